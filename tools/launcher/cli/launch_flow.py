"""Launching at a place: plan, look, gates, agreement, submit once, follow, verify."""

import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.cli import exit_codes
from tools.launcher.cli.existing_outputs import contradiction, finished_steps
from tools.launcher.cli.experiment_files import ExperimentFiles
from tools.launcher.cli.gates_display import show_gates
from tools.launcher.cli.launch_arguments import agreeing_arguments
from tools.launcher.cli.launch_cluster import opened
from tools.launcher.cli.launch_dry_run import requests_text
from tools.launcher.cli.launch_follow import conclude
from tools.launcher.cli.launch_gates import gang_of, launch_gates
from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.cli.launch_question import NOT_SUBMITTED, Stakes, agree_here
from tools.launcher.cli.launch_stage import looked_for_only, refuse_unmade, require_stage, trains
from tools.launcher.cli.launch_waiting import said_if_slow
from tools.launcher.cli.relaunch_finished import refuse_finished
from tools.launcher.cli.run_checkpoints import resume_text, resume_text_if_any
from tools.launcher.cli.run_objects import objects_in_folder, objects_of
from tools.launcher.cli.shipped_requirements import coordinator_requirements
from tools.launcher.documents.longest_run import longest_run
from tools.launcher.iris.gateway import IrisGateway
from tools.launcher.iris.jobs import IrisError
from tools.launcher.iris.local.shapes import GangShape, check_offered
from tools.launcher.rehearsal.limits import FORWARDED_PREFIX
from tools.launcher.render.plan import plan_text
from tools.launcher.store.bundles import LaunchBundle
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.objects import FolderObjects
from tools.launcher.store.records import RunRecord, list_records
from tools.launcher.submit.authorization import AuthorizationInvalid, parse_authorization
from tools.launcher.submit.code_archive import make_code_archive
from tools.launcher.submit.facts import declared_credentials, launch_facts
from tools.launcher.submit.gates.credentials import read_credentials, refuse_values_in
from tools.launcher.submit.gates.gate import GateReport
from tools.launcher.submit.gates.labels import verb_target
from tools.launcher.submit.gates.overrides import collect_overrides
from tools.launcher.submit.gates.shape import shape_of
from tools.launcher.submit.machine import SubmitOutcome, complete, decided_before, submit_once
from tools.launcher.submit.relaunch import RelaunchRefused, prepare_relaunch, refuse_repinned
from tools.launcher.submit.request import IRIS_USER, LaunchFacts, run_key
from tools.launcher.submit.source_state import SourceState, read_source_state
from tools.launcher.submit.stage_steps import RL_KIND, steps_of_stage

NO_GATES = GateReport(gates=())
"""Of a run that has its job: whatever the gates say now, nothing is submitted."""


class Launching(BaseModel):
    """One call of `launch` or `rehearse`.

    Attributes:
        files: the built experiment.
        place: where.
        stage: terminal stage.
        credentials: names of what is handed on; none for a rehearsal, which contacts none of those services.
        source: who launches from what.
        authorized: `who: why` of a relaunch, None of anything else.
        seen_ordinal: the newest attempt that the caller saw in the store, 0 if it did not look.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    files: ExperimentFiles
    place: LaunchPlace
    stage: str
    credentials: tuple[str, ...]
    source: SourceState
    authorized: str | None
    seen_ordinal: int = 0

    @property
    def gang(self) -> GangShape:
        """The gang that is asked for."""
        return gang_of(self.files)

    def facts(self, ordinal: int, gates: dict[str, Any]) -> LaunchFacts:
        """Return the facts of the launch's attempt `ordinal`, after gates that say `gates`."""
        files, place = self.files, self.place
        return launch_facts(
            files.bundle,
            stage=self.stage,
            ordinal=ordinal,
            cluster=place.cluster,
            store_url=place.store_url,
            object_root_url=place.object_root_url,
            route=place.route,
            runtime=place.runtime,
            credentials=self.credentials,
            shape=shape_of(files.launch, files.graph, files.plan.model_dump(mode="json")),
            gates=gates,
            authorized=self.authorized,
            rehearsal_variables={
                name: value
                for name, value in os.environ.items()
                if name.startswith(FORWARDED_PREFIX) and place.runtime == "rehearsal"
            },
            store_variables=place.store_variables(os.environ),
            requirements=b"" if place.is_local else coordinator_requirements(),
        )

    def stakes(self) -> Stakes:
        """Return what a submission takes."""
        plan, gang = self.files.plan, self.gang
        training = trains(self.files, self.stage)
        iris = self.files.launch["iris"]
        longest = longest_run(
            job_timeout_seconds=iris["timeout"] if training else 0,
            max_retries=iris["max_retries"],
            nodes=gang.num_nodes,
            coordinator_timeout_hours=self.files.graph["coordinator_timeout_hours"],
        )
        return Stakes(
            experiment=plan.experiment,
            cluster=self.place.cluster,
            nodes=gang.num_nodes if training else 0,
            gpus_per_node=gang.gpus_per_node,
            gpu_variant=gang.gpu_variant,
            attempts=longest.attempts,
            hours=longest.seconds / longest.attempts / 3600,
            charged=f"the Iris user {IRIS_USER}, asked for by {self.source.who}",
        )


def prepared(
    files: ExperimentFiles,
    place: LaunchPlace,
    flags: Any,
    *,
    credentials: Sequence[str],
    source: SourceState | None = None,
) -> Launching:
    """Check a command line against the experiment.

    Args:
        files: the built experiment.
        place: where.
        flags: of `launch_arguments`.
        credentials: names of what is handed on.
        source: who launches from what; None: it is found out.

    Raises:
        NoSuchStage, AuthorizationInvalid, OverrideError: the command line is wrong.
        StageRefused: nobody makes a step of the stage at the place.
    """
    check_reasons(files.bundle, flags)
    if flags.authorize and not flags.relaunch:
        raise AuthorizationInvalid(
            "--authorize answers for a relaunch, and this is none: nobody needs to answer for a first launch. Add "
            "--relaunch, or leave it out"
        )
    stage = flags.stage or files.graph["default_stage"]
    # A dry run asks nobody, so nobody needs to answer for it.
    answered = flags.relaunch and not flags.dry_run
    require_stage(files, stage)
    refuse_unmade(files, place, stage)
    return Launching(
        files=files,
        place=place,
        stage=stage,
        credentials=tuple(credentials),
        source=source or read_source_state(os.environ),
        authorized=str(parse_authorization(flags.authorize)) if answered else None,
    )


def check_reasons(bundle: LaunchBundle, flags: Any) -> None:
    """Check what is going to be recorded of a command line as somebody's word.

    Args:
        bundle: declares the credentials, whose values nobody shall write there.
        flags: `override` and `authorize` are read.

    Raises:
        AuthorizationInvalid: one holds the value of a credential.
        OverrideError: an override that cannot be taken.
    """
    for flag, words in (("--override", flags.override), ("--authorize", [flags.authorize or ""])):
        refuse_values_in(flag, "\n".join(words), declared_credentials(bundle), os.environ)
    # The gates read them once more, after a cluster was started or reached: a mistake shall not cost that.
    collect_overrides(flags.override, allow_dirty=None)


def launch(launching: Launching, flags: Any, *, agreeing: str | None = None, again: str | None = None) -> int:
    """Bring one run of the document to its end and verify it; see the module.

    Args:
        launching: of `prepared`.
        flags: of `launch_arguments`.
        agreeing: the command line that agrees beforehand; None: that of the experiment's target.
        again: the command line that relaunches, but for --authorize; None: that of the experiment's target.

    Returns:
        an exit status.
    """
    files, place = launching.files, launching.place
    again = again or _again_command(files, flags)
    sys.stdout.write(plan_text(files.plan))
    sys.stdout.write(looked_for_only(files, place, launching.stage))
    if place.is_local:
        check_offered(launching.gang)
    if flags.dry_run:
        return _dry_run(launching, flags)
    with said_if_slow(f"reading the records in {place.store_url}"):
        store = place.open_store()
        earlier = earlier_attempts(launching, store)
    newest = max(earlier, key=lambda record: record.key.ordinal, default=None)
    if newest is not None and not flags.relaunch:
        facts = launching.facts(newest.key.ordinal, {})
        decided = decided_before(newest, files.bundle, facts)
        if decided is not None:
            complete(store, decided, files.bundle)
            who = launching.source.who
            return conclude(decided, place, store, None, who=who, detach=flags.detach, again=again)
    contradicted = contradicted_by(launching)
    if contradicted is not None:
        sys.stderr.write(f"refused: {contradicted}. Nothing was submitted\n")
        return exit_codes.REFUSED
    if newest is not None and flags.relaunch:
        with said_if_slow("looking whether what the run made is still there"):
            refuse_finished(newest, files, place, launching.stage, objects_of(place))
    with opened(place, launching.gang) as cluster:
        if newest is not None and newest.state.is_live and not flags.relaunch:
            # It has its job: whatever the gates say now, nothing is submitted, and nobody needs to agree.
            following = launching.model_copy(update={"credentials": ()})
            return _submit(following, flags, store, reached(cluster), newest.key.ordinal, NO_GATES, again)
        report = gates_of(launching, flags, store, cluster)
        if report.missing or not place.is_local or any(gate.override for gate in report.gates):
            show_gates(report, sys.stdout)
        if report.missing:
            sys.stderr.write(
                f"refused: {', '.join(gate.id for gate in report.missing)} missing, see above; "
                f"{NOT_SUBMITTED}\n"
            )
            return exit_codes.REFUSED
        gateway = reached(cluster)
        ordinal = newest.key.ordinal if newest is not None else 1
        if flags.relaunch:
            ordinal = new_ordinal(launching, store, gateway, earlier)
        sys.stdout.write(resumption(launching, ordinal))
        if not place.is_local:
            agree_here(launching.stakes(), yes=flags.yes, command=agreeing or _agreeing_command(files, flags))
        return _submit(launching, flags, store, gateway, ordinal, report, again)


def gates_of(
    launching: Launching, flags: Any, store: ObjectStore | None, cluster: IrisGateway | IrisError | None
) -> GateReport:
    """Return the gates of a launch; arguments as `launch_gates`."""
    with said_if_slow("looking at the gates"):
        return launch_gates(
            launching.files,
            flags,
            place=launching.place,
            stage=launching.stage,
            source=launching.source,
            credentials=launching.credentials,
            environ=os.environ,
            store=store,
            gateway=cluster,
        )


def reached(cluster: IrisGateway | IrisError) -> IrisGateway:
    """Return the gateway, or raise why there is none."""
    if isinstance(cluster, IrisError):
        raise cluster
    return cluster


def new_ordinal(
    launching: Launching, store: ObjectStore, gateway: IrisGateway, earlier: Sequence[RunRecord]
) -> int:
    """Return the ordinal of a new attempt, once no job of an earlier one runs any more."""
    for step in _trained(launching):
        refuse_repinned(store, step, launching.files.launch["runtime"]["launcher_commit"])
    with said_if_slow("waiting for the jobs of earlier attempts to end"):
        return prepare_relaunch(store, gateway, earlier, launching.source.who)


def contradicted_by(launching: Launching) -> str | None:
    """Return why what lies at the plan's output paths would stop it; None also where they are not read from here."""
    objects = launching.place.objects()
    if objects is None:
        return None
    return contradiction(launching.files.bundle.graph_json, launching.stage, FolderObjects(objects))


def resumption(launching: Launching, ordinal: int) -> str:
    """Return what the attempt will resume from, if nothing contradicts; of a first one only what there is to say."""
    trained = _trained(launching)
    if not trained:
        return ""
    files, objects = launching.files, launching.place.objects()
    key = run_key(launching.facts(ordinal, {}), files.digests.launch)
    if objects is not None:
        finished = finished_steps(files.bundle.graph_json, launching.stage, FolderObjects(objects))
        done = [step["address"] for step in trained if step["address"] in finished]
        if done:
            return f"resume: no: {', '.join(done)} is finished; it is reused, and nothing is trained\n"
    text = resume_text if ordinal > 1 else resume_text_if_any
    return text(files.bundle, key, objects)


def _trained(launching: Launching) -> list[dict[str, Any]]:
    steps = steps_of_stage(launching.files.bundle.graph_json, launching.stage)
    return [step for step in steps if step["kind"] == RL_KIND]


def _submit(
    launching: Launching,
    flags: Any,
    store: ObjectStore,
    gateway: IrisGateway,
    ordinal: int,
    report: GateReport,
    again: str,
) -> int:
    outcome = submitted(launching, store, gateway, ordinal, report)
    who = launching.source.who
    return conclude(outcome, launching.place, store, gateway, who=who, detach=flags.detach, again=again)


def submitted(
    launching: Launching, store: ObjectStore, gateway: IrisGateway, ordinal: int, report: GateReport
) -> SubmitOutcome:
    """Bring it about that attempt `ordinal` has its one job, after gates that say `report`.

    Raises:
        as `submit_once`.
    """
    place = launching.place
    with said_if_slow(f"submitting to {place.cluster}, recorded in {place.store_url}"):
        return submit_once(
            store,
            gateway,
            launching.files.bundle,
            launching.facts(ordinal, report.facts()),
            launching.source,
            make_code_archive(),
            secrets=read_credentials(os.environ, launching.credentials),
        )


def _dry_run(launching: Launching, flags: Any) -> int:
    """Show what a launch would do: no server is asked, nothing is written or started."""
    show_gates(gates_of(launching, flags, None, None), sys.stdout)
    sys.stdout.write(dry_run_text(launching, flags))
    return exit_codes.OK


def dry_run_text(launching: Launching, flags: Any) -> str:
    """Return the exact requests of a launch, and what it would resume from or be refused for."""
    place, files = launching.place, launching.files
    newest, attempt = 0, "the first attempt; whether there are others is not asked of the store"
    refused = contradicted_by(launching)
    if launching.seen_ordinal:
        newest, attempt = launching.seen_ordinal, f"attempts on record: {launching.seen_ordinal}"
    elif place.store_url.startswith("file:"):
        earlier = earlier_attempts(launching, place.open_store())
        newest = max((record.key.ordinal for record in earlier), default=0)
        attempt = f"attempts on record: {newest}"
        if flags.relaunch and refused is None:
            refused = _relaunch_refused(launching, earlier)
    facts = launching.facts(max(newest + (1 if flags.relaunch else 0), 1), {})
    outlook = (
        resumption(launching, facts.ordinal) if refused is None else f"a launch would be refused: {refused}\n"
    )
    return outlook + requests_text(files.bundle, files.digests.launch, facts, attempt=attempt)


def _relaunch_refused(launching: Launching, earlier: Sequence[RunRecord]) -> str | None:
    """Return why a new attempt after these, oldest first, would have nothing to do; None if it would."""
    if not earlier:
        return None
    newest = max(earlier, key=lambda record: record.key.ordinal)
    try:
        refuse_finished(
            newest, launching.files, launching.place, launching.stage, objects_in_folder(launching.place)
        )
    except RelaunchRefused as refused:
        return str(refused)
    return None


def earlier_attempts(launching: Launching, store: ObjectStore) -> list[RunRecord]:
    """Return the records of the document's attempts, oldest first."""
    key = run_key(launching.facts(1, {}), launching.files.digests.launch)
    return [
        record
        for record in list_records(store, key.experiment)
        if record.key.launch_digest == key.launch_digest
    ]


def _agreeing_command(files: ExperimentFiles, flags: Any) -> str:
    """The command line of this launch, with --yes."""
    typed = [
        *(["--relaunch"] if flags.relaunch else []),
        *agreeing_arguments(flags, "stage", "store", "controller", "authorize"),
    ]
    return f"tools/bazel run {verb_target(files.plan.experiment, 'launch')} -- {shlex.join(typed)}"


def _again_command(files: ExperimentFiles, flags: Any) -> str:
    """The command line that relaunches what this one launched, but for who answers for it."""
    named = ("stage", "store", "controller")
    typed = [f"--{name}={value}" for name in named if (value := getattr(flags, name))]
    words = shlex.join(["--relaunch", *typed])
    return f"tools/bazel run {verb_target(files.plan.experiment, flags.verb)} -- {words}"
