"""A run that ended well is not started again for nothing; one that lost what it made is."""

import argparse
import contextlib
import io
import json
import shutil
import sys
import time
from pathlib import Path

import pytest

from tools.launcher.cli import exit_codes
from tools.launcher.cli.built_experiment_testlib import build, source_of
from tools.launcher.cli.commands import run
from tools.launcher.cli.experiment_files import ExperimentFiles, read_experiment_files
from tools.launcher.iris.jobs import JobFacts
from tools.launcher.iris.local.control import status
from tools.launcher.store.bundles import BUNDLE_PREFIX, pack
from tools.launcher.store.content import put_content
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import StoreUnavailable
from tools.launcher.store.objects import FolderObjects
from tools.launcher.store.records import EventKind, RunKey, append_event, list_records

AUTHORIZED = "--authorize=ann: the numbers looked odd"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> list[str]:
    files = build(tmp_path_factory.mktemp("built"), source_of())
    return [f"--{name}={path}" for name, path in files.items()]


@pytest.fixture
def files(built) -> ExperimentFiles:
    flags = dict(file.removeprefix("--").split("=", 1) for file in built)
    return read_experiment_files(argparse.Namespace(**flags))


@pytest.fixture
def state(tmp_path, monkeypatch) -> Path:
    """State folder of the local Iris, which nothing here may start."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("SLIPWAY_STORE", raising=False)
    return tmp_path / "slipway"


def recorded(
    state: Path, files: ExperimentFiles, *kinds: EventKind, ordinal: int = 1, **opening: object
) -> str:
    """Put an attempt of the document on record, and return its name."""
    store = FileStore(state / "store")
    bundle = put_content(store, BUNDLE_PREFIX, pack(files.bundle))
    suffix = f".{opening['stage']}" if opening.get("stage") else ""
    key = RunKey(experiment=f"gsm8k_grpo{suffix}", launch_digest=files.digests.launch, ordinal=ordinal)
    append_event(store, key, "intent", "ann@desk", {"bundle": bundle, "runtime": "rehearsal", **opening})
    for kind in kinds:
        append_event(store, key, kind, "ann@desk", {"job_id": f"/slipway/gsm8k-{ordinal}", "reason": "x"})
    return key.short_name


def made(
    state: Path, files: ExperimentFiles, kinds: tuple[str, ...] = ("hf_model", "dataset", "skyrl")
) -> list[Path]:
    """Leave the artifact of every step of these kinds, and return their folders."""
    folders = []
    for step in files.graph["steps"]:
        if step["kind"] in kinds:
            folder = ObjectRoot(state / "objects").path(step["output_path"])
            folder.mkdir(parents=True)
            facts = {name: step[name] for name in ("name", "version", "kind", "fingerprint")}
            (folder / ".artifact.json").write_text(json.dumps(facts | {"rehearsal": True}))
            folders.append(folder)
    return folders


ENDED_WELL: tuple[EventKind, ...] = ("submitted", "succeeded", "verified")


def test_a_relaunch_of_a_finished_run_is_refused_with_what_to_do_instead(state, files, built, capsys):
    """It submitted a coordinator that reused everything."""
    name = recorded(state, files, *ENDED_WELL)
    made(state, files)
    addresses = ", ".join(step["address"] for step in files.graph["steps"])
    sentence = (
        f" as job /slipway/gsm8k-1, and is verified. A new attempt would train nothing and reuse what is there: "
        f"{addresses}. To train anew, give the experiment a new `version` in its BUILD.bazel, then tools/bazel run "
        "//experiments/gsm8k_grpo:pin and //experiments/gsm8k_grpo:launch"
    )
    for command, plan in (
        # What is refused shows no plan first: the sentence was below 65 lines of it.
        (["relaunch", "gsm8k_grpo", AUTHORIZED], False),
        (["relaunch", "gsm8k_grpo", "--dry-run"], False),
        (["rehearse", *built, "--relaunch", AUTHORIZED], True),
    ):
        assert run(command) == exit_codes.REFUSED
        said = capsys.readouterr()
        assert said.err.startswith(f"refused: {name} ended well at ") and said.err.endswith(f"{sentence}\n")
        assert bool(said.out) is plan
    assert run(["rehearse", *built, "--relaunch", "--dry-run"]) == exit_codes.OK
    assert f"\na launch would be refused: {name} ended well at " in capsys.readouterr().out
    assert not status(state).running
    assert len(list_records(FileStore(state / "store"))) == 1


def test_the_newest_attempt_decides(state, files, capsys):
    recorded(state, files, "submitted", "failed")
    newest = recorded(state, files, *ENDED_WELL, ordinal=2)
    made(state, files)
    older = newest.removesuffix("2") + "1"
    assert run(["relaunch", older, AUTHORIZED]) == exit_codes.REFUSED
    assert capsys.readouterr().err.startswith(f"refused: {newest} ended well at ")


def test_what_is_gone_may_be_made_again(state, files, capsys):
    recorded(state, files, *ENDED_WELL, "verify_failed")
    *_, trained = made(state, files)
    shutil.rmtree(trained)
    assert run(["relaunch", "gsm8k_grpo", "--dry-run"]) == exit_codes.OK
    assert "\nattempt: 2 (attempts on record: 1)\n" in capsys.readouterr().out


def test_one_that_is_not_verified_says_how_to_find_out(state, files, capsys):
    name = recorded(state, files, "submitted", "succeeded")
    made(state, files)
    assert run(["relaunch", "gsm8k_grpo", AUTHORIZED]) == exit_codes.REFUSED
    assert (
        f", and is not verified: `launcher verify {name}` says why. A new attempt" in capsys.readouterr().err
    )


def test_of_an_earlier_stage_the_next_one_is_named(state, files, capsys):
    recorded(state, files, *ENDED_WELL, stage="import")
    made(state, files, ("hf_model", "dataset"))
    assert run(["relaunch", "gsm8k_grpo.import", AUTHORIZED]) == exit_codes.REFUSED
    assert capsys.readouterr().err.endswith(
        ". To go on from what it made: tools/bazel run //experiments/gsm8k_grpo:launch -- --stage=rl\n"
    )


FAR: dict[str, object] = {
    "runtime": "marinskyrl",
    "route": {"scheduler": "iris", "controller": "http://127.0.0.1:1"},
    "cluster": "cw-us-east-02a",
    "object_root": None,
    "credentials": [],
}


class Bucket:
    """The buckets of a real cluster, in the folder of a rehearsal. Everything that is asked is noted."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.first: Exception | None = None
        self.waits_for: tuple[io.StringIO, str] | None = None
        self._objects = FolderObjects(ObjectRoot(folder))
        monkeypatch.setattr("tools.launcher.coordinator.bucket_objects.BucketObjects", lambda: self)
        monkeypatch.setattr("tools.launcher.cli.launch_cluster.IRIS_GIVE_UP_SECONDS", 0.3)

    def read(self, uri: str) -> bytes | None:
        self.asked.append(uri)
        if self.first is not None:
            raise self.first
        if self.waits_for is not None:
            said, words = self.waits_for
            while words not in said.getvalue():
                time.sleep(0.05)
        return self._objects.read(uri)

    def exists(self, uri: str) -> bool:
        return self.read(uri) is not None


@pytest.fixture
def bucket(state, monkeypatch) -> Bucket:
    return Bucket(state / "objects", monkeypatch)


def test_a_bucket_without_an_answer_leaves_it_open(state, files, bucket, capsys):
    """It was refused for good."""
    recorded(state, files, *ENDED_WELL, **FAR)
    bucket.first = StoreUnavailable("s3://lab", "read it", "no answer for 30 s")
    assert run(["relaunch", "gsm8k_grpo", AUTHORIZED]) == exit_codes.UNKNOWN
    assert capsys.readouterr().err == (
        "error: store s3://lab: cannot read it: no answer for 30 s. Make it reachable and writable, then run the "
        "command again\n"
    )
    assert len(list_records(FileStore(state / "store"))) == 1


@pytest.mark.parametrize("is_there", [True, False])
def test_a_dry_run_asks_no_bucket_and_says_what_depends_on_it(state, files, bucket, is_there, capsys):
    """It was refused, where a relaunch might go on."""
    name = recorded(state, files, *ENDED_WELL, **FAR)
    if is_there:
        made(state, files)
    assert run(["relaunch", "gsm8k_grpo", "--dry-run"]) == exit_codes.UNKNOWN
    assert bucket.asked == []
    said = capsys.readouterr()
    assert "\nattempt: 2 (attempts on record: 1)\n" in said.out and "\nrequest to its Iris at " in said.out
    made_by_it = ", ".join(step["address"] for step in files.graph["steps"])
    assert said.err.startswith(f"error: not known whether a relaunch would be refused: {name} ended well at ")
    assert said.err.endswith(
        ", and is verified. It would be if all that the run made is still there, which was not looked for: "
        f"{made_by_it}. A relaunch looks first, and goes on if something is gone. To train anew, give the experiment "
        "a new `version` in its BUILD.bazel, then tools/bazel run //experiments/gsm8k_grpo:pin and "
        "//experiments/gsm8k_grpo:launch\n"
    )


def test_a_dry_run_of_a_failed_one_leaves_nothing_open(state, files, bucket):
    recorded(state, files, "submitted", "failed", **FAR)
    assert run(["relaunch", "gsm8k_grpo", "--dry-run"]) == exit_codes.OK
    assert bucket.asked == []


def test_a_bucket_is_asked_before_the_plan_is_shown(state, files, bucket, capsys):
    name = recorded(state, files, *ENDED_WELL, **FAR)
    made(state, files)
    assert run(["relaunch", "gsm8k_grpo", AUTHORIZED]) == exit_codes.REFUSED
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith(f"refused: {name} ended well at ")
    assert sorted(set(bucket.asked)) == sorted(bucket.asked) != []


def test_that_a_bucket_is_asked_is_said(state, files, bucket, monkeypatch):
    recorded(state, files, *ENDED_WELL, **FAR)
    said = io.StringIO()
    bucket.waits_for = (said, "looking whether what the run made is still there ...\n")
    monkeypatch.setattr(sys, "stderr", said)
    # Nothing is there, so it goes on to the gates.
    assert run(["relaunch", "gsm8k_grpo", AUTHORIZED]) == exit_codes.REFUSED
    assert "see above; nothing was submitted\n" in said.getvalue()


class Failing:
    """A scheduler whose every job fails at once."""

    def __init__(self, store: FileStore, experiment: str, digest: str) -> None:
        self._store, self._experiment, self._digest = store, experiment, digest

    def job_id_of(self, user: str, name: str) -> str:
        return f"/{user}/{name}"

    def submit(self, request) -> str:
        ordinal = len(list_records(self._store, self._experiment))
        key = RunKey(experiment=self._experiment, launch_digest=self._digest, ordinal=ordinal)
        job_id = self.job_id_of(request.user, request.name)
        append_event(self._store, key, "coordinator_started", "coordinator", {"job_id": job_id})
        append_event(self._store, key, "failed", "coordinator", {"reason": "no disk", "step": "x@1"})
        return job_id

    def describe(self, job_id: str) -> JobFacts | None:
        return None

    def children(self, job_id: str) -> tuple[JobFacts, ...]:
        return ()

    def check_in(self) -> str:
        return "ada"


def test_the_way_to_try_again_has_what_was_typed(state, files, built, monkeypatch, capsys):
    """It named a command that does not know the repository's own card and ceilings."""
    iris = Failing(FileStore(state / "store"), "gsm8k_grpo.import", files.digests.launch)
    monkeypatch.setattr(
        "tools.launcher.cli.launch_flow.opened", lambda place, shape: contextlib.nullcontext(iris)
    )
    said = (
        'run failed: no disk\nto try the same document again: tools/bazel run {} --authorize="who: why"; it '
    )
    assert run(["rehearse", *built, "--stage=import"]) == exit_codes.FAILED
    verb = "//experiments/gsm8k_grpo:rehearse -- --relaunch --stage=import"
    assert said.format(verb) in capsys.readouterr().err
    own = [f"--cluster={built_file(built, 'cluster')}", "--budget=experiments/budget.yaml"]
    assert run(["relaunch", "gsm8k_grpo.import", *own, AUTHORIZED]) == exit_codes.FAILED
    command = f"//tools/launcher -- relaunch gsm8k_grpo.import/{files.digests.launch[:8]} {' '.join(own)}"
    assert said.format(command) in capsys.readouterr().err


def built_file(built: list[str], name: str) -> str:
    return next(file for file in built if file.startswith(f"--{name}=")).partition("=")[2]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
