"""Which checkpoint a new attempt resumes from, and who wrote it: a function of what lies at the two roots."""

import json
import sys

import pytest

from tools.launcher.store.records import RunKey, attempt_id_of
from tools.launcher.submit.resume import Listing, SeenFile, newest_checkpoint, resume_lines

ROOT = "s3://lab/tmp/ttl=14d/skyrl/cats/2026.11.30/checkpoints"
KEY = RunKey(experiment="cats", launch_digest="a" * 64, ordinal=2)
FIRST, SECOND = (attempt_id_of(KEY.model_copy(update={"ordinal": ordinal})) for ordinal in (1, 2))
OTHER = "0123456789ab"
HERE, THERE = "a" * 40, "b" * 40
REHEARSED = ("policy.safetensors", "optimizer.safetensors", "trainer_state.json")
TRAINED = ("trainer_state.pt", "data.pt", "policy/fsdp_config.json")


def step(number, names, modified=100.0, size=10):
    return [SeenFile(path=f"global_step_{number}/{name}", size=size, modified=modified) for name in names]


def attempt(attempt_id, begun, document=None):
    return [
        SeenFile(path=f"{attempt_id}/launch.yaml", size=9, modified=document or begun),
        SeenFile(path=f"{attempt_id}/joined/0.json", size=9, modified=begun),
    ]


def newest(*checkpoints, attempts=(), latest=None, commits=None):
    listing = Listing(
        checkpoints=tuple(file for files in checkpoints for file in files),
        attempts=tuple(file for files in attempts for file in files),
        latest=latest,
    )

    def document_of(attempt_id):
        commit = (commits or {}).get(attempt_id)
        return json.dumps({"runtime": {"launcher_commit": commit}}).encode() if commit else None

    return newest_checkpoint(listing, checkpoint_root=ROOT, key=KEY, document_of=document_of)


def document(mode="latest", **trainer):
    return {
        "skyrl": {"trainer": {"resume_mode": mode, **trainer}},
        "artifacts": {"checkpoint_root": ROOT},
        "runtime": {"launcher_commit": HERE},
    }


def test_the_newest_whole_checkpoint_of_a_rehearsal():
    torn = step(15, REHEARSED[:2])
    empty = step(20, REHEARSED, size=0)
    found = newest(step(5, REHEARSED), step(10, REHEARSED), torn, empty, latest="20\n")
    assert (found.step, found.uri) == (10, f"{ROOT}/global_step_10")
    assert found.newer == ("global_step_20", "global_step_15")


@pytest.mark.parametrize(
    ("latest", "expected"), [("10\n", 10), ("20", 20), ("7", 5), ("", None), (None, None)]
)
def test_the_trainer_names_what_is_whole(latest, expected):
    found = newest(step(5, TRAINED), step(10, TRAINED), step(20, TRAINED), latest=latest)
    assert (found.step if found else None) == expected


@pytest.mark.parametrize("missing", range(3))
def test_a_trainers_checkpoint_lacks_nothing(missing):
    names = [name for number, name in enumerate(TRAINED) if number != missing]
    assert newest(step(5, names), latest="5") is None


def test_other_files_are_no_checkpoints():
    others = [
        SeenFile(path=path, size=5, modified=1.0)
        for path in ("latest_ckpt_global_step.txt", "x/y", "global_step_x/a")
    ]
    assert newest(others, step(3, [".policy.partial"]), latest="3") is None


def test_the_writer_is_the_last_attempt_that_had_begun():
    attempts = [attempt(FIRST, 10.0, document=500.0), attempt(SECOND, 200.0), attempt(OTHER, 5.0)]
    commits = {FIRST: HERE, SECOND: THERE, OTHER: THERE}
    found = newest(step(5, REHEARSED, modified=100.0), attempts=attempts, commits=commits)
    assert (found.attempt_id, found.ordinal, found.runtime_commit) == (FIRST, 1, HERE)
    found = newest(step(5, REHEARSED, modified=300.0), attempts=attempts, commits=commits)
    assert (found.attempt_id, found.ordinal, found.runtime_commit) == (SECOND, 2, THERE)
    found = newest(step(5, REHEARSED, modified=7.0), attempts=attempts)
    assert (found.attempt_id, found.ordinal, found.runtime_commit) == (OTHER, None, None)
    assert newest(step(5, REHEARSED, modified=1.0), attempts=attempts).attempt_id is None


@pytest.mark.parametrize(
    ("attempts", "commits", "said"),
    [
        ([attempt(FIRST, 1.0)], {FIRST: HERE}, f"attempt 1 ({FIRST}), runtime {HERE} (as now)"),
        (
            [attempt(SECOND, 1.0)],
            {SECOND: THERE},
            f"attempt 2 ({SECOND}), runtime {THERE} (now it is {HERE})",
        ),
        (
            [attempt(OTHER, 1.0)],
            {},
            f"an attempt of another launch document ({OTHER}), runtime unknown: its document is gone",
        ),
        ([attempt(OTHER, 1.0)], {OTHER: "main"}, f"({OTHER}), runtime unknown: its document is gone"),
        ([], {}, "unknown: no attempt's files are older than it"),
    ],
)
def test_what_is_resumed_from_is_said_with_its_writer(attempts, commits, said):
    found = newest(step(5, REHEARSED), step(9, REHEARSED[:1]), attempts=attempts, commits=commits)
    lines = resume_lines(document(), found, "")
    assert lines[:2] == [
        "resume: from step 5, the newest whole checkpoint (resume_mode latest)",
        f"  checkpoint: {ROOT}/global_step_5",
    ]
    assert lines[2].startswith("  written by: ") and lines[2].endswith(said)
    assert lines[3:] == ["  not whole, passed over: global_step_9"]


def test_what_happens_otherwise_is_said_too():
    found = newest(step(5, REHEARSED))
    assert resume_lines(document("none"), None, "") == [
        "resume: no (resume_mode none): training starts at step 0"
    ]
    assert resume_lines(document("none"), found, "") == [
        f"resume: no (resume_mode none): training starts at step 0; {ROOT}/global_step_5 is not read"
    ]
    assert resume_lines(document("from_path", resume_path="s3://lab/x/global_step_7"), found, "") == [
        "resume: from s3://lab/x/global_step_7, as the document says (resume_mode from_path)"
    ]
    assert resume_lines(document(), None, "") == [
        f"resume: there is no whole checkpoint at {ROOT}: training starts at step 0"
    ]
    assert resume_lines(document(), None, f"{ROOT} is not read from here") == [
        (
            f"resume: unknown: {ROOT} is not read from here. It resumes from the newest checkpoint at {ROOT} "
            "(resume_mode latest)"
        )
    ]
    left_out = document()
    del left_out["skyrl"]["trainer"]["resume_mode"]
    assert resume_lines(left_out, found, "")[0].startswith("resume: from step 5")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
