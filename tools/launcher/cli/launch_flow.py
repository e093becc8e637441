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
from tools.launcher.cli.launch_problems import NoSuchStage
from tools.launcher.cli.launch_question import NOT_SUBMITTED, Stakes, agree_here
from tools.launcher.cli.launch_waiting import said_if_slow
from tools.launcher.cli.run_checkpoints import resume_text, resume_text_if_any
from tools.launcher.cli.shipped_requirements import coordinator_requirements
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
from tools.launcher.submit.machine import complete, decided_before, submit_once
from tools.launcher.submit.relaunch import prepare_relaunch, refuse_repinned
from tools.launcher.submit.request import IRIS_USER, LaunchFacts, run_key
from tools.launcher.submit.source_state import SourceState, read_source_state
from tools.launcher.submit.stage_steps import RL_KIND, steps_of_stage

_NO_GATES = GateReport(gates=())


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
        timeout = int(self.files.launch["iris"]["timeout"])
        return Stakes(
            experiment=plan.experiment,
            cluster=self.place.cluster,
            nodes=gang.num_nodes,
            gpus_per_node=gang.gpus_per_node,
            gpu_variant=gang.gpu_variant,
            hours=timeout / 3600 if timeout > 0 else float(self.files.graph["coordinator_timeout_hours"]),
            charged=f"the Iris user {IRIS_USER}, asked for by {self.source.who}",
        )


def prepared(
    files: ExperimentFiles, place: LaunchPlace, flags: Any, *, credentials: Sequence[str]
) -> Launching:
    """Check a command line against the experiment.

    Raises:
        NoSuchStage, AuthorizationInvalid, OverrideError: the command line is wrong.
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
    if stage not in files.graph["stages"]:
        raise NoSuchStage(
            f"--stage={stage} does not end this graph. Its stages: {', '.join(sorted(files.graph['stages']))}"
        )
    return Launching(
        files=files,
        place=place,
        stage=stage,
        credentials=tuple(credentials),
        source=read_source_state(os.environ),
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


def launch(launching: Launching, flags: Any, *, agreeing: str | None = None) -> int:
    """Bring one run of the document to its end and verify it; see the module.

    Args:
        launching: of `prepared`.
        flags: of `launch_arguments`.
        agreeing: the command line that agrees beforehand; None: that of the experiment's target.

    Returns:
        an exit status.
    """
    files, place = launching.files, launching.place
    sys.stdout.write(plan_text(files.plan))
    if place.is_local:
        check_offered(launching.gang)
    if flags.dry_run:
        return _dry_run(launching, flags)
    with said_if_slow(f"reading the records in {place.store_url}"):
        store = place.open_store()
        earlier = _earlier(launching, store)
    newest = max(earlier, key=lambda record: record.key.ordinal, default=None)
    if newest is not None and not flags.relaunch:
        facts = launching.facts(newest.key.ordinal, {})
        decided = decided_before(newest, files.bundle, facts)
        if decided is not None:
            complete(store, decided, files.bundle)
            return conclude(decided, place, store, None, who=launching.source.who, detach=flags.detach)
    contradicted = _contradiction(launching)
    if contradicted is not None:
        sys.stderr.write(f"refused: {contradicted}. Nothing was submitted\n")
        return exit_codes.REFUSED
    with opened(place, launching.gang) as cluster:
        if newest is not None and newest.state.is_live and not flags.relaunch:
            # It has its job: whatever the gates say now, nothing is submitted, and nobody needs to agree.
            following = launching.model_copy(update={"credentials": ()})
            return _submit(following, flags, store, _reached(cluster), newest.key.ordinal, _NO_GATES)
        report = _gates(launching, flags, store, cluster)
        if report.missing or not place.is_local or any(gate.override for gate in report.gates):
            show_gates(report, sys.stdout)
        if report.missing:
            sys.stderr.write(
                f"refused: {', '.join(gate.id for gate in report.missing)} missing, see above; "
                f"{NOT_SUBMITTED}\n"
            )
            return exit_codes.REFUSED
        gateway = _reached(cluster)
        ordinal = newest.key.ordinal if newest is not None else 1
        if flags.relaunch:
            ordinal = _relaunch(launching, store, gateway, earlier)
        sys.stdout.write(_resumption(launching, ordinal))
        if not place.is_local:
            agree_here(launching.stakes(), yes=flags.yes, command=agreeing or _agreeing_command(files, flags))
        return _submit(launching, flags, store, gateway, ordinal, report)


def _gates(
    launching: Launching, flags: Any, store: ObjectStore | None, cluster: IrisGateway | IrisError | None
) -> GateReport:
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


def _reached(cluster: IrisGateway | IrisError) -> IrisGateway:
    if isinstance(cluster, IrisError):
        raise cluster
    return cluster


def _relaunch(
    launching: Launching, store: ObjectStore, gateway: IrisGateway, earlier: Sequence[RunRecord]
) -> int:
    """Return the ordinal of a new attempt, once no job of an earlier one runs any more."""
    for step in _trained(launching):
        refuse_repinned(store, step, launching.files.launch["runtime"]["launcher_commit"])
    with said_if_slow("waiting for the jobs of earlier attempts to end"):
        return prepare_relaunch(store, gateway, earlier, launching.source.who)


def _contradiction(launching: Launching) -> str | None:
    """Why what lies at the plan's output paths would stop it; None also where they are not read from here."""
    objects = launching.place.objects()
    if objects is None:
        return None
    return contradiction(launching.files.bundle.graph_json, launching.stage, FolderObjects(objects))


def _resumption(launching: Launching, ordinal: int) -> str:
    """What the attempt will resume from, if nothing contradicts; of a first one only what there is to say."""
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
) -> int:
    files, place, source = launching.files, launching.place, launching.source
    with said_if_slow(f"submitting to {place.cluster}, recorded in {place.store_url}"):
        outcome = submit_once(
            store,
            gateway,
            files.bundle,
            launching.facts(ordinal, report.facts()),
            source,
            make_code_archive(),
            secrets=read_credentials(os.environ, launching.credentials),
        )
    return conclude(outcome, place, store, gateway, who=source.who, detach=flags.detach)


def _dry_run(launching: Launching, flags: Any) -> int:
    """Show what a launch would do: no server is asked, nothing is written or started."""
    place, files = launching.place, launching.files
    show_gates(_gates(launching, flags, None, None), sys.stdout)
    newest, attempt = 0, "the first attempt; whether there are others is not asked of the store"
    if launching.seen_ordinal:
        newest, attempt = launching.seen_ordinal, f"attempts on record: {launching.seen_ordinal}"
    elif place.store_url.startswith("file:"):
        earlier = _earlier(launching, place.open_store())
        newest = max((record.key.ordinal for record in earlier), default=0)
        attempt = f"attempts on record: {newest}"
    facts = launching.facts(max(newest + (1 if flags.relaunch else 0), 1), {})
    contradicted = _contradiction(launching)
    if contradicted is None:
        sys.stdout.write(_resumption(launching, facts.ordinal))
    else:
        sys.stdout.write(f"a launch would be refused: {contradicted}\n")
    sys.stdout.write(requests_text(files.bundle, files.digests.launch, facts, attempt=attempt))
    return exit_codes.OK


def _earlier(launching: Launching, store: ObjectStore) -> list[RunRecord]:
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
