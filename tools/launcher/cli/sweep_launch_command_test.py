"""Launching the points of a sweep: what is left, each once, one agreement, and how it ends.

The scheduler here takes jobs and forgets them; tests/e2e/sweep_test.py has a real one.
"""

import contextlib
import shutil
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools.launcher.cli import exit_codes, sweep_flow, sweep_follow
from tools.launcher.cli.commands import run
from tools.launcher.cli.launch_problems import NotAgreed
from tools.launcher.cli.sweep_ends import Ended, show_ends, sweep_status
from tools.launcher.cli.sweep_testlib import SWEEP, write_sweep
from tools.launcher.iris.capacity import BackendFacts, NodeFacts, PeerFacts
from tools.launcher.iris.jobs import IrisUnreachable, JobFacts, JobRefused, TaskFacts
from tools.launcher.iris.local.control import status
from tools.launcher.observe.run_testlib import CHILD_ID, COORDINATOR_ID, FakeIris, Run
from tools.launcher.render.sweep import load_sweep
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.object_store import StoreUnavailable
from tools.launcher.store.records import RunKey, append_event, list_records

BUDGET = "--budget=experiments/budget.yaml"
SEEDS = ("1", "2", "3")


class Iris:
    """A scheduler in memory. What `during` says happens while a job is submitted: it may raise, or write a record."""

    def __init__(self):
        self.jobs, self.submitted, self.during = {}, [], {}

    def job_id_of(self, user, name):
        return f"/{user}/{name}"

    def submit(self, request):
        name = request.name.rpartition("-")[0].rpartition("-")[0]
        happens = self.during.get(name)
        if isinstance(happens, BaseException):
            raise happens
        job_id = self.job_id_of(request.user, request.name)
        assert job_id not in self.jobs, "submitted twice"
        self.submitted.append(request)
        self.jobs[job_id] = JobFacts(
            job_id=job_id,
            name=request.name,
            env={},
            state="running",
            error="",
            pending_reason="",
            argv=request.argv,
            tasks=(TaskFacts(index=0, state="running", exit_code=None, error="", attempts=1),),
        )
        if happens is not None:
            happens(request)
        return job_id

    def describe(self, job_id):
        return self.jobs.get(job_id)

    def children(self, job_id):
        return ()

    def check_in(self):
        return "ada"

    def peers(self):
        backend = BackendFacts(name="k8s", gpu_variants=("h100",), nodes=(NodeFacts(gpus=8),) * 32)
        return (PeerFacts(name="cw-us-east-02a", reachable=True, backends=(backend,)),)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    found, flags = write_sweep(tmp_path_factory.mktemp("sweep"), SEEDS)
    assert found == 0
    return flags


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    """Of a cluster of others, and pinned."""
    folder = tmp_path_factory.mktemp("far")
    _, flags = write_sweep(folder, SEEDS, local=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BUILD_WORKSPACE_DIRECTORY", str(folder))
        assert run(["sweep-pin", flags[0], "--ledger=versions.lock.yaml"]) == exit_codes.OK
    found, flags = write_sweep(folder, SEEDS, local=False, ledger=folder / "versions.lock.yaml")
    assert found == 0
    return flags


@pytest.fixture
def iris(tmp_path, monkeypatch):
    """The scheduler of every place, and a state folder of this test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("SLIPWAY_STORE", "SLIPWAY_CONTROLLER", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    found = Iris()

    @contextlib.contextmanager
    def opened(place, shape):
        yield found

    monkeypatch.setattr(sweep_flow, "opened", opened)
    return found


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path / "state/slipway/store")


def points_of(flags):
    return load_sweep(Path(flags[0].removeprefix("--sweep=")).read_bytes()).points


def key_of(point, ordinal=1):
    return RunKey(experiment=point.label.rpartition(":")[2], launch_digest=point.launch, ordinal=ordinal)


def names(iris):
    return [request.name for request in iris.submitted]


def events(store, point, ordinal=1):
    (record,) = [
        each for each in list_records(store, key_of(point).experiment) if each.key.ordinal == ordinal
    ]
    return [event.kind for event in record.events]


def test_every_point_is_submitted_once_however_often_it_is_called(built, iris, store, capsys):
    for said in ("submitted", "already submitted"):
        assert run(["sweep-launch", *built, "--detach"]) == exit_codes.OK
        shown = capsys.readouterr().out
        assert shown.count(f"({said})") == 3
        assert "3 running\n" in shown
    assert len(names(iris)) == 3
    assert [events(store, point) for point in points_of(built)] == [["intent", "submitted"]] * 3


def test_killed_between_two_points_it_goes_on_where_it_stopped(built, iris, store, capsys):
    """The second call finds the first point's job, an intent without a job, and a point without anything."""

    class Killed(BaseException):
        pass

    iris.during["seeds_seed_2"] = Killed()
    with pytest.raises(Killed):
        run(["sweep-launch", *built, "--detach"])
    one, two, three = points_of(built)
    assert (events(store, one), events(store, two)) == (["intent", "submitted"], ["intent"])
    assert list_records(store, key_of(three).experiment) == ()
    capsys.readouterr()
    iris.during.clear()
    assert run(["sweep-launch", *built, "--detach"]) == exit_codes.OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[10] for line in lines[2:5]] == ["running", "unconfirmed", "new"]
    assert "to be launched: 2 of 3 points, 192 GPU-hours at most." in lines
    assert sorted(names(iris)) == [
        f"seeds_seed_{i}-{points_of(built)[i - 1].launch[:8]}-1" for i in (1, 2, 3)
    ]


def test_points_on_record_are_left_alone(built, iris, store, capsys):
    one, two, three = points_of(built)
    append_event(store, key_of(one), "intent", "ann@desk", {"runtime": "rehearsal"})
    for kind in ("submitted", "succeeded", "verified"):
        append_event(store, key_of(one), kind, "ann@desk", {"job_id": "/slipway/x"})
    append_event(store, key_of(two), "intent", "ann@desk", {"runtime": "rehearsal"})
    append_event(store, key_of(two), "failed", "ann@desk", {"reason": "a node died", "step": "x@1"})
    assert run(["sweep-launch", *built, "--detach"]) == exit_codes.FAILED
    said = capsys.readouterr()
    assert [name.partition("-")[0] for name in names(iris)] == ["seeds_seed_3"]
    rows = [line.split() for line in said.out.splitlines()[-4:-1]]
    assert rows == [
        ["seed_1", "verified", key_of(one).short_name],
        ["seed_2", "failed", key_of(two).short_name],
        ["seed_3", "running", key_of(three).short_name],
    ]
    assert said.out.splitlines()[-1] == "1 verified, 1 failed, 1 running"
    assert said.err.startswith("seed_2: failed: attempt 1 of seeds_seed_2 (launch sha256:")
    assert "a node died" in said.err and '--relaunch --authorize="who: why"' in said.err


def test_a_point_that_failed_is_started_again_only_if_asked_to_and_no_other_is(built, iris, store, capsys):
    one, two, _ = points_of(built)
    for point, ends in ((one, "failed"), (two, "succeeded")):
        append_event(store, key_of(point), "intent", "ann@desk", {"runtime": "rehearsal"})
        append_event(store, key_of(point), ends, "ann@desk", {"reason": "a node died"})
    append_event(store, key_of(two), "verified", "ann@desk", {})
    assert run(["sweep-launch", *built, "--detach", "--relaunch"]) == exit_codes.USAGE
    assert "say who and why" in capsys.readouterr().err
    again = ["--relaunch", "--authorize=ann: node fault"]
    assert run(["sweep-launch", *built, "--detach", *again]) == exit_codes.OK
    assert "to be launched: 2 of 3 points" in capsys.readouterr().out
    assert [name.rpartition("-")[2] for name in names(iris)] == ["2", "1"]
    authorized = {
        record.key.ordinal: record.events[0].facts.get("authorized")
        for record in list_records(store)
        if record.key.experiment != key_of(two).experiment
    }
    assert authorized == {1: None, 2: "ann: node fault"}


def test_so_many_points_at_a_time(built, iris, capsys):
    for running, waiting in ((2, 1), (2, 1)):
        assert run(["sweep-launch", *built, "--detach", "--at-most=2"]) == exit_codes.OK
        assert f"{running} running, {waiting} waits\n" in capsys.readouterr().out
    assert len(names(iris)) == 2


def finishes(store, point, kind, **facts):
    """What a coordinator writes while its job is submitted."""

    def happens(_):
        append_event(store, key_of(point), "coordinator_started", "coordinator", {"job_id": "/slipway/x"})
        append_event(store, key_of(point), kind, "coordinator", facts)

    return happens


def test_a_point_that_fails_stops_no_other(built, iris, store, capsys):
    """One at a time: the second is submitted after the first failed, the third after the second was refused."""
    one, _, three = points_of(built)
    iris.during = {
        "seeds_seed_1": finishes(store, one, "failed", reason="out of memory"),
        "seeds_seed_2": JobRefused("no group has 8 H100"),
        "seeds_seed_3": finishes(store, three, "succeeded"),
    }
    assert run(["sweep-launch", *built, "--at-most=1"]) == exit_codes.FAILED
    said = capsys.readouterr()
    assert [name.partition("-")[0] for name in names(iris)] == ["seeds_seed_1", "seeds_seed_3"]
    assert said.out.splitlines()[-1] == "1 failed, 1 refused, 1 not verified"
    assert "seed_1: failed: out of memory. To try it again: the same command with --relaunch " in said.err
    assert "seed_2: refused: Iris refused the job /slipway/seeds_seed_2-" in said.err
    assert "seed_3: not verified: tasks_joined: " in said.err
    assert events(store, three)[-1] == "verify_failed"


def test_a_record_that_vanishes_is_of_its_point_alone(built, iris, store, tmp_path, capsys):
    one, two, three = points_of(built)

    def happens(request):
        shutil.rmtree(tmp_path / f"state/slipway/store/runs/{key_of(one).experiment}")
        finishes(store, two, "failed", reason="x")(request)

    iris.during = {"seeds_seed_2": happens, "seeds_seed_3": finishes(store, three, "failed", reason="x")}
    assert run(["sweep-launch", *built]) == exit_codes.UNKNOWN
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == "1 not known, 2 failed"
    assert "seed_1: not known: seeds_seed_1 launch sha256:" in said.err
    assert "there is no record in the store" in said.err


def test_a_scheduler_that_does_not_answer_is_asked_once(built, iris, capsys):
    iris.during["seeds_seed_2"] = IrisUnreachable("http://127.0.0.1:1", 10.0)
    assert run(["sweep-launch", *built, "--detach"]) == exit_codes.UNKNOWN
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == "1 running, 1 not known, 1 not tried"
    assert said.err.count("Nothing was submitted by this call") == 2
    iris.during.clear()
    assert run(["sweep-launch", *built, "--detach"]) == exit_codes.OK
    assert len(names(iris)) == 3


def test_an_interruption_says_what_goes_on(built, iris, capsys):
    iris.during["seeds_seed_2"] = KeyboardInterrupt()
    assert run(["sweep-launch", *built]) == exit_codes.INTERRUPTED
    assert capsys.readouterr().err == (
        "\ninterrupted: 1 submitted, 2 left or being submitted, 0 over. What was submitted goes on; the same command "
        "finds it and goes on with the sweep\n"
    )


def test_a_record_that_cannot_be_read_stops_no_other(built, iris, store, tmp_path, capsys):
    append_event(store, key_of(points_of(built)[0]), "intent", "ann@desk", {})
    (event,) = (tmp_path / "state/slipway/store").rglob("0001.json")
    event.chmod(0o600)
    event.write_bytes(b"{")
    assert run(["sweep-launch", *built, "--detach"]) == exit_codes.UNKNOWN
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == "1 unreadable, 2 running"
    assert said.err.startswith("seed_1: unreadable: event runs/seeds_seed_1/")


def test_a_run_of_another_place_is_refused(built, iris, store, capsys):
    append_event(store, key_of(points_of(built)[0]), "intent", "ann@desk", {"runtime": "marinskyrl"})
    assert run(["sweep-launch", *built, "--detach"]) == exit_codes.FAILED
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == "1 refused, 2 running"
    assert "in another place: runtime marinskyrl, this launch rehearsal" in said.err


def test_a_run_that_is_being_cancelled_is_told_as_a_launch_tells_it(built, iris, store, capsys):
    """Its coordinator fails a moment before whoever cancels it has the last word: it was `failed`."""
    one, two, three = points_of(built)
    last_word = threading.Timer(
        1.0, append_event, [store, key_of(one), "cancelled", "ann@desk", {"reason": "by ann: wrong data"}]
    )

    def cancelled(_):
        for kind in ("cancel_requested", "failed"):
            append_event(
                store, key_of(one), kind, "ann@desk", {"authorized": "ann: wrong data", "reason": "x"}
            )
        last_word.start()

    iris.during = {
        "seeds_seed_1": cancelled,
        "seeds_seed_2": finishes(store, two, "failed", reason="x"),
        "seeds_seed_3": finishes(store, three, "failed", reason="x"),
    }
    assert run(["sweep-launch", *built]) == exit_codes.FAILED
    last_word.join()
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == "1 cancelled, 2 failed"
    assert "seed_1: cancelled: by ann: wrong data. " in said.err


def test_a_point_that_trains_says_its_steps_now_and_then(tmp_path, monkeypatch):
    """Nothing was said from `running` to the end."""
    now = [0.0]
    monkeypatch.setattr(sweep_follow, "time", SimpleNamespace(monotonic=lambda: now[0]))
    cats, scheduler = Run(tmp_path), FakeIris()
    cats.submit()
    scheduler.put(COORDINATOR_ID, "running")
    scheduler.put(CHILD_ID, "running", tasks=2)
    place = SimpleNamespace(objects=lambda: cats.root)
    following = sweep_follow.Following(cats.key, place, cats.store, scheduler, "ann@desk")
    said = []
    for at, steps in ((0, 0), (1, 1), (1.5, 2), (2.5, 2), (3, 2), (30, 2), (31, 3)):
        lines = (b'{"step": %d, "reward_mean": 0.5}\n' % step for step in range(1, steps + 1))
        cats.write(f"{cats.attempt_uri}/metrics.jsonl", b"".join(lines))
        now[0] = at
        said.append(following.look()[0])
    assert said == ["running", "", "", "step 2/3", "", "", "step 3/3"]


def test_all_gates_of_all_points_are_shown_before_anything_is_submitted(far, iris, tmp_path, capsys):
    launch = ["sweep-launch", *far, BUDGET, "--store=gs://team/x", "--controller=http://127.0.0.1:1"]
    assert run([*launch, "--dry-run"]) == exit_codes.OK
    shown = capsys.readouterr().out
    assert shown.count("\ngates\n") == shown.count("  credentials    missing") == 1
    assert [line.split()[:3] for line in shown.splitlines() if "fixed-version" in line] == [
        ["fixed-version", "passed", f"seed_{seed}:"] for seed in SEEDS
    ]
    assert shown.count("request to its Iris at cw-us-east-02a:") == 3
    assert "records: not asked for in a dry run." in shown
    assert iris.submitted == [] and not (tmp_path / "state").exists()


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A store in a folder in the place of the bucket, and all that the gates of cw-us-east-02a want but the pins."""
    found = FileStore(tmp_path / "shared")
    monkeypatch.setattr("tools.launcher.cli.launch_place.LaunchPlace.open_store", lambda _: found)
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    return found


FAR = ["--store=gs://team/x", "--controller=http://127.0.0.1:1", BUDGET, "--allow-dirty"]


@pytest.mark.parametrize("kinds", [("submitted",), ("submitted", "succeeded", "verified")])
def test_a_rehearsal_is_never_taken_for_the_run(far, iris, shared, capsys, kinds):
    """Rehearsed into the cluster's store, a point was called verified and never launched."""
    key = key_of(points_of(far)[0])
    append_event(shared, key, "intent", "ann@desk", {"runtime": "rehearsal"})
    for kind in kinds:
        append_event(shared, key, kind, "ann@desk", {"job_id": "/slipway/x"})
    for again in ([], ["--relaunch", "--authorize=ann: again"]):
        assert run(["sweep-launch", *far, *FAR, "--yes", "--detach", *again]) == exit_codes.FAILED
        said = capsys.readouterr()
        assert f" elsewhere {key.short_name}\n" in said.out
        assert said.out.splitlines()[-1] == "1 refused, 2 running"
        assert "in another place: runtime rehearsal, this launch marinskyrl" in said.err
    assert len(names(iris)) == 2


def test_a_run_whose_buckets_cannot_be_read_is_not_known(far, iris, shared, capsys, monkeypatch):
    """It was called not verified."""

    class Away:
        def read(self, uri):
            raise StoreUnavailable("s3://lab", f"read {uri}", "Forbidden")

        def exists(self, uri):
            return self.read(uri) is not None

    monkeypatch.setattr("tools.launcher.coordinator.bucket_objects.BucketObjects", Away)
    monkeypatch.setattr("tools.launcher.cli.launch_cluster.IRIS_GIVE_UP_SECONDS", 0.3)
    one, two, three = points_of(far)
    iris.during = {
        "seeds_seed_1": finishes(shared, one, "succeeded"),
        "seeds_seed_2": finishes(shared, two, "failed", reason="x"),
        "seeds_seed_3": finishes(shared, three, "failed", reason="x"),
    }
    assert run(["sweep-launch", *far, *FAR, "--yes"]) == exit_codes.UNKNOWN
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == "1 not known, 2 failed"
    assert "seed_1: not known: tasks_joined: unknown: s3://" in said.err


def test_a_missing_gate_refuses_the_sweep(tmp_path, iris, shared, capsys):
    _, unpinned = write_sweep(tmp_path, SEEDS, local=False)
    capsys.readouterr()
    assert run(["sweep-launch", *unpinned, *FAR, "--yes"]) == exit_codes.REFUSED
    said = capsys.readouterr()
    assert "fixed-version  missing" in said.out
    assert said.err.endswith(
        "refused: fixed-version missing for seed_1, seed_2, seed_3, see above; nothing was submitted. For all "
        "points: tools/bazel run //experiments/x:seeds.pin\n"
    )
    assert iris.submitted == [] and list_records(shared) == ()


def test_one_agreement_with_the_total(far, iris, shared, capsys, monkeypatch):
    asked = []

    def no(stakes, *, yes, command):
        asked.append((stakes.words(), command))
        raise NotAgreed("not agreed to; nothing was submitted")

    monkeypatch.setattr(sweep_flow, "agree_here", no)
    assert run(["sweep-launch", *far, *FAR, "--at-most=2", "--detach"]) == exit_codes.REFUSED
    assert capsys.readouterr().err == "refused: not agreed to; nothing was submitted\n"
    ((words, command),) = asked
    assert words.startswith(
        f"{SWEEP} is going to be submitted:\n"
        "  cluster    cw-us-east-02a\n"
        "  points     3 of 3, as the table above has them\n"
        "  GPU hours  at most 288 in all\n"
        "  charged    the Iris user slipway, asked for by "
    )
    assert command == (
        "tools/bazel run //experiments/x:seeds.launch -- --at-most=2 --store=gs://team/x "
        "--controller=http://127.0.0.1:1 --detach --allow-dirty --yes"
    )
    assert iris.submitted == []


def test_agreed_to_it_is_submitted_with_its_credentials(far, iris, shared, capsys):
    assert run(["sweep-launch", *far, *FAR, "--yes", "--detach"]) == exit_codes.OK
    said = capsys.readouterr()
    assert "GPU hours  at most 288 in all\n" in said.err
    assert "0123456789abcdef" not in said.out + said.err
    assert [list(request.secrets) for request in iris.submitted] == [["WANDB_API_KEY"]] * 3
    # They run: nothing is asked for, and nothing submitted.
    assert run(["sweep-launch", *far, *FAR, "--detach"]) == exit_codes.OK
    assert len(iris.submitted) == 3


def test_a_dry_run_of_what_is_done_submits_nothing(built, iris, store, capsys):
    for point in points_of(built):
        append_event(store, key_of(point), "intent", "ann@desk", {"runtime": "rehearsal"})
        append_event(store, key_of(point), "failed", "ann@desk", {"reason": "x"})
    assert run(["sweep-launch", *built, "--dry-run"]) == exit_codes.OK
    assert capsys.readouterr().out.endswith("nothing would be submitted\n")
    assert run(["sweep-launch", *built, "--dry-run", "--relaunch"]) == exit_codes.OK
    assert capsys.readouterr().out.count("\nattempt: 2 (attempts on record: 1)\n") == 3
    assert iris.submitted == []


def test_a_rehearsal_takes_one_point_after_another_and_stops_at_none(far, iris, store, capsys, monkeypatch):
    """Of a sweep for a cluster of others: nobody agrees to anything, and no credential is looked for."""
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    one, two, three = points_of(far)
    seen = []

    def after(point, kind, **facts):
        def happens(request):
            seen.append(sorted(record.state.value for record in list_records(store)))
            finishes(store, point, kind, **facts)(request)

        return happens

    iris.during = {
        "seeds_seed_1": after(one, "failed", reason="out of memory"),
        "seeds_seed_2": after(two, "succeeded"),
        "seeds_seed_3": after(three, "failed", reason="a node died"),
    }
    assert run(["sweep-rehearse", *far]) == exit_codes.FAILED
    said = capsys.readouterr()
    # None was submitted while another had not ended.
    assert seen == [["intent"], ["failed", "intent"], ["failed", "intent", "succeeded"]]
    lines = said.out.splitlines()
    assert lines[0] == f"{SWEEP}: 3 points, version 2026.09.21, on local"
    assert (
        "to be rehearsed: 3 of 3 points, one after another on this machine's CPU; the GPU-hours are those of a launch."
        in lines
    )
    assert [line for line in lines if line.endswith(" over)")] == [
        "seed_1: failed (1/3 over)",
        "seed_2: not verified (2/3 over)",
        "seed_3: failed (3/3 over)",
    ]
    assert lines[-1] == "2 failed, 1 not verified"
    assert [request.secrets for request in iris.submitted] == [{}] * 3
    assert {record.runtime for record in list_records(store)} == {"rehearsal"}

    # What failed is over until somebody answers for another attempt, which takes those alone.
    iris.during.clear()
    assert run(["sweep-rehearse", *far]) == exit_codes.FAILED
    assert len(iris.submitted) == 3
    capsys.readouterr()
    iris.jobs.clear()
    again = ["--relaunch", "--authorize=ann: my laptop slept", "--detach"]
    assert run(["sweep-rehearse", *far, *again]) == exit_codes.FAILED
    assert capsys.readouterr().out.splitlines()[-1] == "1 running, 1 not verified, 1 waits"
    assert len(iris.submitted) == 4


def test_a_rehearsal_goes_on_where_it_was_interrupted(far, iris, store, capsys):
    iris.during["seeds_seed_2"] = KeyboardInterrupt()
    one, two, _ = points_of(far)
    iris.during["seeds_seed_1"] = finishes(store, one, "failed", reason="x")
    assert run(["sweep-rehearse", *far]) == exit_codes.INTERRUPTED
    assert "interrupted: 0 submitted, 2 left or being submitted, 1 over. " in capsys.readouterr().err
    iris.during["seeds_seed_2"] = finishes(store, two, "failed", reason="y")
    iris.during["seeds_seed_3"] = KeyboardInterrupt()
    assert run(["sweep-rehearse", *far]) == exit_codes.INTERRUPTED
    assert "seed_2: failed (2/3 over)" in capsys.readouterr().out.splitlines()
    assert [name.partition("-")[0] for name in names(iris)] == ["seeds_seed_1", "seeds_seed_2"]


def test_a_rehearsal_of_some_points(far, iris, capsys):
    assert run(["sweep-rehearse", *far, "--only=seed_3", "--only=seed_1", "--detach"]) == exit_codes.OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{SWEEP}: 2 of 3 points, version 2026.09.21, on local"
    assert any(line.startswith("to be rehearsed: 2 of 3 points, ") for line in lines)
    assert lines[-1] == "1 running, 1 waits"
    assert [name.partition("-")[0] for name in names(iris)] == ["seeds_seed_1"]
    assert run(["sweep-rehearse", *far, "--only=seed_4"]) == exit_codes.USAGE
    assert capsys.readouterr().err == (
        f"error: --only=seed_4: {SWEEP} has no such point. Its points: seed_1, seed_2, seed_3\n"
    )


def test_a_rehearsal_that_ends_before_the_training_takes_no_gpu(far, iris, capsys):
    assert run(["sweep-rehearse", *far, "--stage=import", "--dry-run"]) == exit_codes.OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[8] for line in lines[2:5]] == ["0"] * 3


def test_a_dry_run_of_a_rehearsal_starts_nothing(far, iris, tmp_path, capsys):
    assert run(["sweep-rehearse", *far, "--dry-run"]) == exit_codes.OK
    assert capsys.readouterr().out.count("\nattempt: 1 (attempts on record: 0)\n") == 3
    assert iris.submitted == [] and not (tmp_path / "state/slipway/store").exists()


@pytest.mark.parametrize(
    ("flags", "code", "sentence"),
    [
        (["--at-most=0"], exit_codes.USAGE, "error: --at-most=0: no point could run. Give a number from 1\n"),
        (["--stage=evaluate"], exit_codes.USAGE, "error: --stage=evaluate does not end this graph. "),
        (
            ["--override=credentials=ann: trust me"],
            exit_codes.USAGE,
            "error: --override credentials: nobody's word makes it true. ",
        ),
        (["--authorize=ann: hurry"], exit_codes.USAGE, "error: --authorize answers for a relaunch, "),
        (["--store=s3://x/y"], exit_codes.USAGE, "error: store 's3://x/y': "),
        (["--controller=http://x:1"], exit_codes.REFUSED, "refused: --controller=http://x:1: "),
    ],
)
def test_a_mistake_on_the_command_line_starts_nothing(built, iris, tmp_path, capsys, flags, code, sentence):
    assert run(["sweep-launch", *built, *flags]) == code
    assert capsys.readouterr().err.startswith(sentence)
    assert iris.submitted == [] and not status(tmp_path / "state/slipway").running


def test_points_of_different_places_are_refused(tmp_path, iris, capsys):
    other = {
        "2": {
            'parent_cluster_config="lib/iris/config/marin.yaml"': 'parent_cluster_config="lib/iris/config/marin-dev.yaml"'
        }
    }
    found, flags = write_sweep(tmp_path, ("1", "2"), local=False, more=other)
    assert found == 0
    capsys.readouterr()
    assert run(["sweep-launch", *flags, "--store=gs://team/x"]) == exit_codes.REFUSED
    assert capsys.readouterr().err == (
        "refused: the points seed_1 and seed_2 go to different places, cw-us-east-02a by lib/iris/config/marin.yaml "
        "for cw-us-east-02a and cw-us-east-02a by lib/iris/config/marin-dev.yaml for cw-us-east-02a. Make a sweep for each\n"
    )


def test_a_table_of_another_build_is_refused(tmp_path, built, iris, capsys):
    table = Path(built[0].removeprefix("--sweep="))
    first = points_of(built)[0]
    other = tmp_path / "sweep.json"
    other.write_text(table.read_text().replace(first.launch, "e" * 64))
    assert run(["sweep-launch", f"--sweep={other}", built[1]]) == exit_codes.USAGE
    assert capsys.readouterr().err == (
        f"error: {first.files.digest} and the table of {SWEEP} are of two builds. Build the sweep again\n"
    )


def test_points_that_would_be_one_run_are_refused_by_the_launch_too(tmp_path, iris, capsys):
    """A table that was not made by the build, which refuses them."""
    _, flags = write_sweep(tmp_path, ("1",))
    table = Path(flags[0].removeprefix("--sweep="))
    sweep = load_sweep(table.read_bytes())
    (point,) = sweep.points
    twin = point.model_copy(update={"point": "seed_2", "values": {"seed": "2"}})
    from tools.launcher.render.sweep import dump_sweep

    table.write_bytes(dump_sweep(sweep.model_copy(update={"points": (point, twin)})))
    capsys.readouterr()
    assert run(["sweep-launch", *flags]) == exit_codes.USAGE
    assert capsys.readouterr().err.startswith(
        f"error: {SWEEP}: the points seed_1 and seed_2 have one recipe, sha256:"
    )


def test_the_exit_status_of_a_sweep():
    ok, failed, refused, unknown = (
        exit_codes.OK,
        exit_codes.FAILED,
        exit_codes.REFUSED,
        exit_codes.UNKNOWN,
    )
    for seen, expected in (
        ({ok}, ok),
        ({ok, failed}, failed),
        ({ok, refused}, failed),
        ({failed, refused}, failed),
        ({refused}, refused),
        ({ok, failed, unknown}, unknown),
        ({refused, exit_codes.USAGE}, failed),
    ):
        assert sweep_status(seen) == expected, seen


def test_the_ends_are_a_table_and_their_reasons(capsys):
    ends = {"a": Ended("verified", "x/1/1", "", exit_codes.OK), "bb": Ended("failed", "", "why", 1)}
    assert show_ends(ends) == exit_codes.FAILED
    said = capsys.readouterr()
    assert (
        said.out
        == "  point  state     run\n  a      verified  x/1/1\n  bb     failed\n1 verified, 1 failed\n"
    )
    assert said.err == "bb: failed: why\n"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
