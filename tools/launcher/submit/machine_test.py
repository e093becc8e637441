import json
import multiprocessing
import sys

import pytest
from pydantic import SecretStr

from tools.launcher.documents.canonical import digest_of, sha256_hex
from tools.launcher.iris.jobs import IrisUnreachable, JobFacts, JobNameTaken, JobRefused, ReplyLost, TaskFacts
from tools.launcher.store.bundles import BundleError, LaunchBundle, pack, unpack
from tools.launcher.store.content import get_content
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.object_store import ObjectConflict, PutOutcome
from tools.launcher.store.records import RunKey, RunState, append_event, list_records, load_record
from tools.launcher.submit.code_archive import CodeArchive
from tools.launcher.submit.machine import SubmitState, submit_once
from tools.launcher.submit.provenance import provenance_key
from tools.launcher.submit.request import LaunchFacts, LaunchMismatch
from tools.launcher.submit.source_state import SourceState
from tools.launcher.submit.stage_steps import steps_digest

LAUNCH = {
    "runtime": {"launcher_commit": "c" * 40},
    "iris": {"allocation": {"num_nodes": 2, "gpus_per_node": 8, "gpu_variant": "H100", "cpu": 4}},
}
DIGEST = digest_of(LAUNCH)


def step(address, kind, *deps):
    name, version = address.split("@")
    return {
        "address": address,
        "name": name,
        "version": version,
        "kind": kind,
        "fingerprint": sha256_hex(address.encode()),
        "adopted": False,
        "deps": list(deps),
        "config": {"runtime_commit": "c" * 40} if kind == "skyrl" else {},
    }


GRAPH = {
    "schema": 1,
    "experiment": "//experiments/cat_count:cat_count",
    "experiment_name": "cat_count",
    "stages": {"rl": "run@2026.11.30", "evaluate": "eval@2026.11.30"},
    "default_stage": "rl",
    "steps": [
        step("model@2026.11.30", "hf_model"),
        step("data@2026.11.30", "dataset"),
        step("run@2026.11.30", "skyrl", "model@2026.11.30", "data@2026.11.30"),
        step("eval@2026.11.30", "evaluate", "run@2026.11.30"),
    ],
}
BUNDLE = LaunchBundle(
    launch_yaml=json.dumps(LAUNCH).encode(),
    graph_json=json.dumps(GRAPH).encode(),
    plan_json=b"{}",
    digest_text=f"recipe sha256:{'b' * 64}\nlaunch sha256:{DIGEST}\n",
)
CODE = CodeArchive(data=b"zip", sha256=sha256_hex(b"zip"))
SOURCE = SourceState(who="ann@desk", when="2026-11-30T12:00:00Z", source_commit="d" * 40, dirty=True, note="")
NAME = f"cat_count-{DIGEST[:8]}-1"
JOB_ID = f"/slipway/{NAME}"
KEY = RunKey(experiment="cat_count", launch_digest=DIGEST, ordinal=1)


class Crash(BaseException):
    """The process ends here: nothing may catch it."""


class FakeIris:
    """A scheduler in memory. `script` says how the next submissions answer."""

    def __init__(self, *script):
        self.jobs, self.requests, self.script, self.reachable = {}, [], list(script), True

    def job_id_of(self, user, name):
        return f"/{user}/{name}"

    def submit(self, request):
        job_id = self.job_id_of(request.user, request.name)
        how = self.script.pop(0) if self.script else "accept"
        if how == "unreachable" or not self.reachable:
            raise IrisUnreachable("http://127.0.0.1:1", 10.0)
        if how == "refuse":
            raise JobRefused("no group has 8 H100")
        if how == "lose request":
            raise ReplyLost(job_id)
        if job_id in self.jobs:
            raise JobNameTaken(job_id)
        self.requests.append(request)
        self.jobs[job_id] = job_of(request.argv, job_id)
        if how == "lose reply":
            raise ReplyLost(job_id)
        if how == "lose reply and connection":
            self.reachable = False
            raise ReplyLost(job_id)
        return job_id

    def describe(self, job_id):
        if not self.reachable:
            raise IrisUnreachable("http://127.0.0.1:1", 10.0)
        return self.jobs.get(job_id)

    def children(self, job_id):
        return ()

    def end(self, state, error="", exit_code=1):
        task = TaskFacts(index=0, state=state, exit_code=exit_code, error=error, attempts=1)
        for job_id, job in self.jobs.items():
            self.jobs[job_id] = job.model_copy(update={"state": state, "error": error, "tasks": (task,)})


def job_of(argv, job_id=JOB_ID):
    return JobFacts(
        job_id=job_id,
        name=job_id.rsplit("/", 1)[-1],
        state="running",
        error="",
        pending_reason="",
        argv=argv,
        env={},
        tasks=(),
    )


def facts_for(store, **changes):
    fields = {
        "experiment_name": "cat_count",
        "stage": "rl",
        "default_stage": "rl",
        "ordinal": 1,
        "cluster": "local",
        "store_url": store.url,
        "object_root_url": "file:///objects",
        "coordinator_timeout_hours": 2,
        "rehearsal_variables": {"SLIPWAY_REHEARSAL_STEP_SECONDS": "0.5"},
        **changes,
    }
    return LaunchFacts(**fields)


def launch(store, iris, bundle=BUNDLE, who="ann@desk", **changes):
    source = SOURCE.model_copy(update={"who": who})
    return submit_once(store, iris, bundle, facts_for(store, **changes), source, CODE, secrets={})


def kinds(record):
    return [event.kind for event in record.events]


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path)


def test_the_first_launch_submits_and_records_everything(store):
    iris = FakeIris()
    outcome = launch(store, iris)
    assert outcome.state is SubmitState.SUBMITTED
    assert outcome.state.has_job
    assert (outcome.job_id, outcome.message) == (JOB_ID, f"submitted {JOB_ID}")
    record = outcome.record
    assert record == load_record(store, KEY)
    assert kinds(record) == ["intent", "submitted"]
    assert record.job_name == NAME
    assert record.artifacts == ("model@2026.11.30", "data@2026.11.30", "run@2026.11.30")
    assert record.topology == {"num_nodes": 2, "gpus_per_node": 8, "gpu_variant": "H100"}
    assert (record.runtime_commit, record.recipe_digest, record.cluster) == ("c" * 40, "b" * 64, "local")
    assert (record.who, record.source_commit, record.dirty) == ("ann@desk", "d" * 40, True)
    assert record.forwarded_names == ("SLIPWAY_REHEARSAL_STEP_SECONDS",)
    assert unpack(get_content(store, "bundles/sha256", record.bundle_digest)) == BUNDLE


def test_the_second_launch_adopts_the_job(store):
    iris = FakeIris()
    first = launch(store, iris)
    again = launch(store, iris, who="bob@lap")
    assert again.state is SubmitState.ADOPTED
    assert again.message == f"already submitted: following {JOB_ID}"
    assert again.record == first.record
    assert len(iris.jobs) == 1


def test_a_finished_run_is_returned_untouched_even_without_iris(store):
    iris = FakeIris()
    launch(store, iris)
    append_event(store, KEY, "succeeded", "coordinator", {})
    append_event(store, KEY, "verified", "ann@desk", {"verified": True})
    before = load_record(store, KEY)
    iris.reachable = False
    outcome = launch(store, iris)
    assert outcome.state is SubmitState.FINISHED_BEFORE
    assert outcome.state.has_job
    assert outcome.message == f"already finished as {JOB_ID}: nothing to submit"
    assert outcome.record == before == load_record(store, KEY)


def test_a_failed_attempt_is_not_restarted_silently(store):
    iris = FakeIris()
    launch(store, iris)
    append_event(store, KEY, "failed", "coordinator", {"reason": "rank 1 never joined"})
    outcome = launch(store, iris)
    assert outcome.state is SubmitState.FAILED_BEFORE
    assert not outcome.state.has_job
    assert outcome.message == (
        f"attempt 1 of cat_count (launch sha256:{DIGEST[:8]}) failed as {JOB_ID}: rank 1 never joined. "
        "Nothing was submitted. To try the same document again, ask for a relaunch explicitly "
        '(--relaunch --authorize="who: why"; through Bazel: `-- --relaunch ...`): '
        "it becomes attempt 2"
    )
    assert len(iris.requests) == 1
    relaunched = launch(store, iris, ordinal=2)
    assert relaunched.state is SubmitState.SUBMITTED
    assert relaunched.job_id == f"/slipway/cat_count-{DIGEST[:8]}-2"


def test_a_refusal_is_recorded_and_may_be_tried_again(store):
    iris = FakeIris("refuse")
    outcome = launch(store, iris)
    assert outcome.state is SubmitState.REFUSED
    assert outcome.message == (
        f"Iris refused the job {JOB_ID}: no group has 8 H100. Nothing runs; correct that and launch again"
    )
    assert (outcome.record.state, outcome.record.reason) == (RunState.REFUSED, "no group has 8 H100")
    assert launch(store, iris).state is SubmitState.SUBMITTED
    assert load_record(store, KEY).state is RunState.SUBMITTED


def test_an_unreachable_scheduler_changes_nothing(store):
    iris = FakeIris("unreachable")
    outcome = launch(store, iris)
    assert outcome.state is SubmitState.UNREACHABLE
    assert outcome.message.startswith(
        "Iris at http://127.0.0.1:1 did not answer within 10 s (the Iris client's own default is "
        "30 minutes); nothing was changed"
    )
    assert outcome.message.endswith("Nothing was submitted by this call")
    assert kinds(outcome.record) == ["intent"]
    assert launch(store, iris).state is SubmitState.SUBMITTED
    iris.reachable = False
    assert launch(store, iris).state is SubmitState.UNREACHABLE


def test_the_record_names_the_code_that_was_submitted(store):
    """The call that submits may be of another build than the one that recorded the intent."""
    iris = FakeIris("unreachable")
    launch(store, iris)
    other = CodeArchive(data=b"other", sha256=sha256_hex(b"other"))
    outcome = submit_once(store, iris, BUNDLE, facts_for(store), SOURCE, other, secrets={})
    intent, submitted = outcome.record.events
    assert (intent.facts["code"], submitted.facts["code"]) == (CODE.sha256, other.sha256)
    assert iris.requests[0].files == {"slipway.zip": b"other"}


def test_a_lost_reply_is_resolved_by_looking(store):
    iris = FakeIris("lose reply")
    outcome = launch(store, iris)
    assert (outcome.state, outcome.message) == (SubmitState.SUBMITTED, f"submitted {JOB_ID}")
    assert kinds(outcome.record) == ["intent", "submitted"]
    assert len(iris.jobs) == 1


def test_a_lost_request_is_sent_once_more(store):
    iris = FakeIris("lose request")
    assert launch(store, iris).state is SubmitState.SUBMITTED
    assert len(iris.requests) == 1


def test_two_lost_requests_leave_it_to_the_next_call(store):
    iris = FakeIris("lose request", "lose request")
    outcome = launch(store, iris)
    assert outcome.state is SubmitState.UNKNOWN
    assert outcome.job_id is None
    assert outcome.message == (
        f"job {JOB_ID} may exist: the request was sent and its answer lost, and the job is not there yet. "
        "Launch again: that looks the job up by name before it acts"
    )
    assert kinds(outcome.record) == ["intent"]
    assert launch(store, iris).state is SubmitState.SUBMITTED


def test_a_reply_lost_with_the_connection_is_found_by_the_next_call(store):
    iris = FakeIris("lose reply and connection")
    outcome = launch(store, iris)
    assert outcome.state is SubmitState.UNKNOWN
    assert (
        f"job {JOB_ID} may exist: the request was sent, its answer lost, and the job could not be"
        in outcome.message
    )
    iris.reachable = True
    assert launch(store, iris).state is SubmitState.ADOPTED
    assert len(iris.jobs) == 1


def test_a_reply_lost_to_a_late_arrival_is_adopted(store):
    # The first request arrives only while the second is being made: the name is taken, by us.
    iris = FakeIris("lose request", "late")
    original = iris.submit

    def submit(request):
        if iris.script[:1] == ["late"]:
            iris.script = ["accept"]
            original(request)
            raise JobNameTaken(JOB_ID)
        return original(request)

    iris.submit = submit
    assert launch(store, iris).state is SubmitState.ADOPTED
    assert len(iris.jobs) == 1


def test_a_name_that_is_taken_and_cannot_be_looked_up_is_unknown(tmp_path):
    iris = FakeIris()
    iris.jobs[JOB_ID] = job_of(("sleep",))
    iris.describe = lambda job_id: None
    outcome = launch(FileStore(tmp_path / "one"), iris)
    assert outcome.state is SubmitState.UNKNOWN
    assert (
        "may exist: Iris said that a job of this name exists, then that it does not. Launch"
        in outcome.message
    )

    def away(job_id):
        raise IrisUnreachable("http://127.0.0.1:1", 10.0)

    iris.describe = away
    outcome = launch(FileStore(tmp_path / "two"), iris)
    assert outcome.state is SubmitState.UNKNOWN
    assert "may exist: Iris has a job of this name and it could not be looked up: Iris at" in outcome.message


@pytest.mark.parametrize(
    ("argv", "seen"),
    [
        (("python", "--launch=" + "f" * 64), "sha256:" + "f" * 64),
        (("sleep", "1"), "(none to be seen)"),
    ],
)
def test_a_foreign_job_of_our_name_stops_the_launch(store, argv, seen):
    iris = FakeIris()
    iris.jobs[JOB_ID] = job_of(argv)
    outcome = launch(store, iris)
    assert outcome.state is SubmitState.CONFLICT
    assert outcome.message == (
        f"job {JOB_ID} exists with the launch digest {seen}, expected sha256:{DIGEST}. "
        "It is not this launch and is left alone. Find out whose it is, or give the experiment another name"
    )
    assert kinds(outcome.record) == ["intent", "conflict"]
    assert kinds(launch(store, iris).record) == ["intent", "conflict"]
    del iris.jobs[JOB_ID]
    assert launch(store, iris).state is SubmitState.SUBMITTED


def test_a_job_that_records_elsewhere_stops_the_launch(store, tmp_path):
    iris = FakeIris()
    elsewhere = FileStore(tmp_path / "elsewhere")
    launch(elsewhere, iris)
    outcome = launch(store, iris)
    assert outcome.state is SubmitState.CONFLICT
    assert outcome.message == (
        f"job {JOB_ID} runs this launch and records in the store {elsewhere.url}, this command uses "
        f"{store.url}. "
        "Use that store"
    )


def test_other_steps_around_the_same_document_are_refused(store):
    iris = FakeIris()
    launch(store, iris)
    steps = [*GRAPH["steps"][:3], {**GRAPH["steps"][3], "fingerprint": "e" * 64}]
    other = BUNDLE.model_copy(update={"graph_json": json.dumps({**GRAPH, "steps": steps}).encode()})
    outcome = launch(store, iris, bundle=other)
    assert outcome.state is SubmitState.CONFLICT
    assert outcome.message.startswith(f"{KEY} was begun by ann@desk at ")
    assert outcome.message.endswith(
        f"with other steps: recorded sha256:{steps_digest(BUNDLE.graph_json)}, "
        f"this build sha256:{steps_digest(other.graph_json)}. The launch document is the same, "
        "a step around it is not. Give the experiment a new version"
    )
    append_event(store, KEY, "succeeded", "coordinator", {})
    assert launch(store, iris, bundle=other).state is SubmitState.CONFLICT
    printed_otherwise = BUNDLE.model_copy(update={"plan_json": b'{"printed": "otherwise"}'})
    assert launch(store, iris, bundle=printed_otherwise).state is SubmitState.FINISHED_BEFORE


def test_a_version_that_was_pinned_after_its_launch_is_the_same_run(store):
    iris = FakeIris()
    launch(store, iris)
    pinned = {**GRAPH, "pinned": True, "credentials": ["WANDB_API_KEY"], "max_retries": 7}
    outcome = launch(
        store, iris, bundle=BUNDLE.model_copy(update={"graph_json": json.dumps(pinned).encode()})
    )
    assert outcome.state is SubmitState.ADOPTED


def test_a_dead_coordinator_is_recorded_as_failed(store):
    iris = FakeIris()
    launch(store, iris)
    append_event(store, KEY, "coordinator_started", "coordinator", {"job_id": JOB_ID})
    iris.end("killed", "cancelled by operator", exit_code=137)
    outcome = launch(store, iris)
    assert outcome.state is SubmitState.FAILED_BEFORE
    assert outcome.record.reason == (
        f"the coordinator {JOB_ID} ended as 'killed' without recording a result "
        "(task 0 exit code 137 (killed); cancelled by operator)"
    )


def test_a_job_that_vanished_is_not_started_again(store):
    iris = FakeIris()
    launch(store, iris)
    iris.jobs.clear()
    outcome = launch(store, iris)
    assert outcome.state is SubmitState.FAILED_BEFORE
    assert (
        f"Iris no longer knows the coordinator {JOB_ID}; it was lost with the cluster's state"
        in outcome.message
    )
    assert iris.jobs == {}


def test_a_coordinator_that_finished_before_its_submission_was_recorded(store):
    iris = FakeIris("lose reply and connection")
    launch(store, iris)
    append_event(store, KEY, "coordinator_started", "coordinator", {"job_id": JOB_ID})
    append_event(store, KEY, "succeeded", "coordinator", {})
    assert launch(store, iris).state is SubmitState.FINISHED_BEFORE


def test_another_stage_is_another_record(store):
    iris = FakeIris()
    outcome = launch(store, iris, stage="import")
    assert outcome.job_id == f"/slipway/cat_count-{DIGEST[:8]}-1-import"
    assert outcome.key.experiment == "cat_count.import"
    assert outcome.record.artifacts == ("model@2026.11.30", "data@2026.11.30")
    assert launch(store, iris).job_id == JOB_ID
    assert len(list_records(store)) == 2


@pytest.mark.parametrize(
    ("changes", "bundle_changes", "sentence"),
    [
        (
            {"stage": "rlhf"},
            {},
            "cat_count has no stage 'rlhf'. Its stages are import, rl, evaluate: use one of them",
        ),
        (
            {"experiment_name": "dog_count"},
            {},
            (
                "the graph is of the experiment 'cat_count', the launch of 'dog_count'. "
                "Build the experiment again and launch its own target"
            ),
        ),
        (
            {},
            {"graph_json": b"{}"},
            "lacks what a launch records (KeyError: 'experiment_name'). Build the experiment again",
        ),
        (
            {"experiment_name": "//a:b"},
            {},
            "experiment '//a:b' is not a record name. Use its name without package",
        ),
        ({}, {"graph_json": b"{"}, "lacks what a launch records (JSONDecodeError: "),
    ],
)
def test_a_bundle_that_does_not_fit_is_refused_before_anything_is_recorded(
    store, changes, bundle_changes, sentence
):
    with pytest.raises(LaunchMismatch) as raised:
        launch(store, FakeIris(), bundle=BUNDLE.model_copy(update=bundle_changes), **changes)
    assert sentence in str(raised.value)
    assert store.list("runs/") == ()


def test_a_changed_document_is_refused_before_anything_is_stored(store):
    with pytest.raises(BundleError, match="The reviewed and the submitted bytes differ"):
        launch(store, FakeIris(), bundle=BUNDLE.model_copy(update={"launch_yaml": b"a: 1"}))
    assert store.list("") == ()


def test_a_version_of_another_recipe_stops_the_launch_before_its_intent(store):
    iris = FakeIris()
    steps = [
        {**each, "fingerprint": "e" * 64} if each["kind"] == "skyrl" else each for each in GRAPH["steps"]
    ]
    other = BUNDLE.model_copy(update={"graph_json": json.dumps({**GRAPH, "steps": steps}).encode()})
    launch(store, iris, experiment_name="cat_count", bundle=other, ordinal=2)
    outcome = launch(store, iris, who="bob@lap")
    assert outcome.state is SubmitState.TAKEN
    assert not outcome.state.has_job
    assert (outcome.record, outcome.job_id) == (None, None)
    for part in ("run@2026.11.30", "e" * 12, sha256_hex(b"run@2026.11.30")[:12], "ann@desk"):
        assert part in outcome.message
    assert store.list(f"runs/cat_count/{DIGEST}/1/") == ()
    assert len(iris.requests) == 1


def test_a_version_whose_turn_is_anothers_stops_the_launch_before_its_intent(store):
    iris = FakeIris()
    first = launch(store, iris)
    outcome = launch(store, iris, ordinal=2)
    assert outcome.state is SubmitState.TAKEN
    assert outcome.record is None
    assert f"run@2026.11.30 is the turn of cat_count/{DIGEST[:8]}/1, taken by ann@desk at " in outcome.message
    assert list(iris.jobs) == [first.job_id]
    # The holder ended without a word: whoever wants the turn finds that out, and gets it.
    iris.end("killed", "node lost")
    assert launch(store, iris, ordinal=2).state is SubmitState.SUBMITTED


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"runtime": "marinskyrl"}, "runtime rehearsal, this launch marinskyrl"),
        ({"cluster": "cw-us-east-02a"}, "cluster local, this launch cw-us-east-02a"),
        ({"object_root_url": None}, "objects file:///objects, this launch None"),
        ({"object_root_url": "file:///bob"}, "objects file:///objects, this launch file:///bob"),
    ],
)
def test_a_run_of_another_place_is_neither_followed_nor_settled(store, changes, differs):
    iris = FakeIris()
    launch(store, iris)
    before = load_record(store, KEY)
    iris.jobs.clear()  # In the other place's scheduler nobody knows the job.
    outcome = launch(store, iris, who="bob@lap", **changes)
    assert outcome.state is SubmitState.CONFLICT
    assert outcome.message == (
        f"{KEY} was begun by ann@desk at {before.when} in another place: {differs}. One store holds one run "
        "of a document: give this one another store with --store"
    )
    assert load_record(store, KEY) == before


def test_a_cancelled_run_is_not_started_again(store):
    iris = FakeIris()
    launch(store, iris)
    append_event(store, KEY, "cancelled", "ann@desk", {"reason": "cancelled by ann: wrong data"})
    outcome = launch(store, iris)
    assert outcome.state is SubmitState.CANCELLED_BEFORE
    assert not outcome.state.has_job
    assert outcome.message == (
        f"attempt 1 of cat_count (launch sha256:{DIGEST[:8]}) was cancelled: cancelled by ann: wrong data. "
        "Nothing was submitted. To run the same document after all, ask for a relaunch explicitly "
        "(--relaunch "
        '--authorize="who: why"; through Bazel: `-- --relaunch ...`): it becomes attempt 2'
    )
    assert len(iris.requests) == 1


def test_a_run_that_was_to_be_cancelled_before_it_had_a_job_gets_none(store):
    """Breaker, issue 4: cancelled after its intent while the cluster was away, it was submitted by the next call."""
    iris = FakeIris("unreachable")
    assert launch(store, iris).state is SubmitState.UNREACHABLE
    append_event(store, KEY, "cancel_requested", "bob@desk", {"authorized": "bob: wrong data", "jobs": []})
    outcome = launch(store, iris)
    assert (outcome.state, outcome.record.state) == (SubmitState.CANCELLED_BEFORE, RunState.CANCELLED)
    assert "was cancelled: by bob: wrong data. Nothing was submitted" in outcome.message
    assert iris.requests == []


def test_provenance_is_written_with_the_submission_and_made_up_for(store, tmp_path):
    class Dies(FileStore):
        def put_if_absent(self, key, data):
            if key.endswith("provenance.json"):
                raise Crash
            return super().put_if_absent(key, data)

    iris = FakeIris()
    with pytest.raises(Crash):
        launch(Dies(tmp_path), iris)
    assert load_record(store, KEY).state is RunState.SUBMITTED
    assert not store.exists(provenance_key(KEY))
    launch(store, iris)
    statement = store.get(provenance_key(KEY))
    append_event(store, KEY, "succeeded", "coordinator", {})
    launch(store, iris)
    assert store.get(provenance_key(KEY)) == statement


def test_no_secret_is_in_anything_that_is_kept(store, tmp_path):
    value = "hidden-5f0c1d7e"
    iris = FakeIris()
    source = SOURCE.model_copy()
    facts = facts_for(store, credentials=("WANDB_API_KEY",))
    secrets = {"WANDB_API_KEY": SecretStr(value)}
    outcome = submit_once(store, iris, BUNDLE, facts, source, CODE, secrets=secrets)
    (request,) = iris.requests
    assert request.secrets == secrets
    assert outcome.record.forwarded_names == ("SLIPWAY_REHEARSAL_STEP_SECONDS", "WANDB_API_KEY")
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert kept and not any(value.encode() in data for data in kept)
    assert value not in repr(request) + repr(outcome) + str(request.argv) + str(request.env)


def test_secrets_that_are_not_the_declared_ones_are_refused_before_anything_is_stored(store):
    with pytest.raises(LaunchMismatch, match="the declared ones differ: WANDB_API_KEY"):
        launch(store, FakeIris(), credentials=("WANDB_API_KEY",))
    assert store.list("") == ()


def test_what_a_later_call_answered_for_is_recorded_with_its_submission(store):
    iris = FakeIris("unreachable")
    launch(store, iris, gates={"gates": {"smoke": "passed"}, "overrides": {}})
    outcome = launch(
        store, iris, gates={"gates": {"smoke": "overridden"}, "overrides": {"smoke": "ann: down"}}
    )
    intent, submitted = outcome.record.events
    assert intent.facts["overrides"] == {}
    assert submitted.facts["overrides"] == {"smoke": "ann: down"}


class Countdown:
    """Crashes at one of the boundaries before and after every call of store and scheduler."""

    def __init__(self, steps):
        self.left = steps

    def __call__(self):
        self.left -= 1
        if self.left < 0:
            raise Crash


def crashing(target, names, countdown):
    class Crashing:
        def __getattr__(self, name):
            value = getattr(target, name)
            if name not in names:
                return value

            def call(*arguments):
                countdown()
                try:
                    return value(*arguments)
                finally:
                    countdown()

            return call

    return Crashing()


@pytest.mark.parametrize("script", [(), ("lose reply",), ("lose request",), ("refuse",)])
def test_a_crash_at_any_step_is_resolved_by_the_next_call(tmp_path, script):
    crashes = 0
    for steps in range(1000):
        store, iris = FileStore(tmp_path / str(steps)), FakeIris(*script)
        countdown = Countdown(steps)
        try:
            submit_once(
                crashing(store, ("put_if_absent", "get", "list"), countdown),
                crashing(iris, ("submit", "describe"), countdown),
                BUNDLE,
                facts_for(store),
                SOURCE,
                CODE,
                secrets={},
            )
        except Crash:
            crashes += 1
        else:
            break
        iris.script = []
        converged = launch(store, iris)
        assert converged.state in (SubmitState.SUBMITTED, SubmitState.ADOPTED), (steps, converged.message)
        assert list(iris.jobs) == [JOB_ID], steps
        assert len(iris.requests) == 1, steps
        assert converged.record.state is RunState.SUBMITTED, steps
        assert kinds(converged.record).count("intent") == 1, steps
        assert launch(store, iris).record == converged.record, steps
        # The bytes the job reads are there and are the reviewed ones.
        assert get_content(store, "bundles/sha256", converged.record.bundle_digest) == pack(BUNDLE), steps
    assert crashes >= 16


def _race(arguments):
    root, jobs, number = arguments
    return launch(FileStore(root), FileIris(jobs), who=f"p{number}").state


class FileIris(FakeIris):
    """A scheduler several processes share: a job is a file, its name taken atomically."""

    def __init__(self, folder):
        super().__init__()
        self.folder = FileStore(folder)

    def submit(self, request):
        job_id = self.job_id_of(request.user, request.name)
        try:
            if self.folder.put_if_absent(job_id[1:], json.dumps(request.argv).encode()) is PutOutcome.EQUAL:
                raise JobNameTaken(job_id)
        except ObjectConflict:
            raise JobNameTaken(job_id) from None
        return job_id

    def describe(self, job_id):
        if not self.folder.exists(job_id[1:]):
            return None
        return job_of(tuple(json.loads(self.folder.get(job_id[1:]))), job_id)

    def children(self, job_id):
        return ()


def test_eight_launchers_at_once_make_one_job(tmp_path):
    arguments = [(tmp_path / "store", tmp_path / "jobs", number) for number in range(8)]
    with multiprocessing.get_context("fork").Pool(8) as pool:
        states = pool.map(_race, arguments, chunksize=1)
    assert set(states) <= {SubmitState.SUBMITTED, SubmitState.ADOPTED}
    assert states.count(SubmitState.SUBMITTED) == 1
    record = load_record(FileStore(tmp_path / "store"), KEY)
    assert record.state is RunState.SUBMITTED
    assert kinds(record).count("intent") == 1
    assert FileStore(tmp_path / "jobs").list("") == (f"slipway/{NAME}",)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
