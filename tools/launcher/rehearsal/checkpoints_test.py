import json
import sys

import numpy as np
import pytest

from tools.launcher.rehearsal.checkpoints import (
    CheckpointRefused,
    ForeignCheckpoint,
    Owner,
    checkpoint_folder,
    is_due,
    read_checkpoint,
    resume_latest,
    save_checkpoint,
    tear_checkpoint,
)
from tools.launcher.rehearsal.policy import SHAPE, AdamState, initial_weights

OWNER = Owner(run_id="run", launcher_commit="c" * 40, model_identity="m@1:12345678", seed=3)


def _optimizer():
    return AdamState(initial_weights(8), initial_weights(9) ** 2, 12)


def _save(root, step, keep=2, owner=OWNER):
    return save_checkpoint(
        root, owner=owner, step=step, weights=initial_weights(step), optimizer=_optimizer(), keep=keep
    )


def test_what_is_saved_is_resumed(tmp_path):
    _save(tmp_path, 4)
    resumed, refused = resume_latest(tmp_path, OWNER)
    assert (resumed.step, refused) == (4, ())
    assert np.array_equal(resumed.weights, initial_weights(4))
    assert np.array_equal(resumed.optimizer.mean, _optimizer().mean)
    assert np.array_equal(resumed.optimizer.square, _optimizer().square)
    assert resumed.optimizer.updates == 12


def test_only_the_newest_are_kept_and_nothing_else_lies_about(tmp_path):
    for step in (3, 6, 9, 12):
        _save(tmp_path, step)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["global_step_12", "global_step_9", "latest_ckpt_global_step.txt"]
    assert (tmp_path / "latest_ckpt_global_step.txt").read_text() == "12\n"
    files = sorted(path.name for path in checkpoint_folder(tmp_path, 12).iterdir())
    assert files == ["optimizer.safetensors", "policy.safetensors", "trainer_state.json"]
    state = json.loads((checkpoint_folder(tmp_path, 12) / "trainer_state.json").read_bytes())
    assert state["slipway_rehearsal"] is True


def test_nothing_to_resume(tmp_path):
    assert resume_latest(tmp_path / "absent", OWNER) == (None, ())


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (
            lambda folder: (folder / "optimizer.safetensors").unlink(),
            "checkpoint global_step_6 is torn: optimizer.safetensors is missing",
        ),
        (
            lambda folder: (folder / "trainer_state.json").unlink(),
            "checkpoint global_step_6 is torn: trainer_state.json is missing",
        ),
        (
            lambda folder: (folder / "policy.safetensors").write_bytes(b"short"),
            "checkpoint global_step_6 is torn: policy.safetensors has the digest",
        ),
        (
            lambda folder: (folder / "trainer_state.json").write_bytes(b'{"run_id": '),
            "checkpoint global_step_6 is torn: trainer_state.json: Invalid JSON",
        ),
    ],
)
def test_a_torn_checkpoint_is_refused_and_the_one_before_used(tmp_path, damage, sentence):
    _save(tmp_path, 3)
    damage(_save(tmp_path, 6))
    resumed, refused = resume_latest(tmp_path, OWNER)
    assert resumed.step == 3
    assert len(refused) == 1
    assert refused[0].startswith(sentence)
    assert refused[0].endswith("The previous complete checkpoint is used")
    with pytest.raises(CheckpointRefused):
        read_checkpoint(checkpoint_folder(tmp_path, 6), OWNER)


def test_the_torn_fault_makes_what_is_refused(tmp_path):
    _save(tmp_path, 3)
    tear_checkpoint(tmp_path, owner=OWNER, step=6, weights=initial_weights(6), optimizer=_optimizer())
    assert (tmp_path / "latest_ckpt_global_step.txt").read_text() == "6\n"
    resumed, refused = resume_latest(tmp_path, OWNER)
    assert (resumed.step, len(refused)) == (3, 1)
    # Written again after the resume, it is whole.
    _save(tmp_path, 6)
    assert resume_latest(tmp_path, OWNER)[0].step == 6


@pytest.mark.parametrize("field", ["run_id", "model_identity"])
def test_another_runs_checkpoint_is_not_resumed(tmp_path, field):
    _save(tmp_path, 3)
    other = OWNER.model_copy(update={field: "other"})
    with pytest.raises(ForeignCheckpoint) as caught:
        resume_latest(tmp_path, other)
    assert f"belongs to another run: its {field} is" in str(caught.value)
    assert "this run's is 'other'. Give the experiment a new version" in str(caught.value)


def test_another_runtimes_checkpoint_is_resumed_and_known(tmp_path):
    """Whether it may is decided by the version's ledger and claims, before a task starts."""
    _save(tmp_path, 3)
    resumed, refused = resume_latest(tmp_path, OWNER.model_copy(update={"launcher_commit": "d" * 40}))
    assert (resumed.step, resumed.launcher_commit, refused) == (3, "c" * 40, ())


def test_an_interrupted_write_leaves_no_checkpoint(tmp_path, monkeypatch):
    _save(tmp_path, 3)
    monkeypatch.setattr("pathlib.Path.rename", lambda *_: (_ for _ in ()).throw(OSError("killed")))
    with pytest.raises(OSError, match="killed"):
        _save(tmp_path, 6)
    assert resume_latest(tmp_path, OWNER)[0].step == 3


@pytest.mark.parametrize(
    ("interval", "due"), [(3, [3, 6, 8]), (4, [4, 8]), (20, [8]), (0, [8]), (-1, [8]), (1, list(range(1, 9)))]
)
def test_the_schedule(interval, due):
    assert [step for step in range(1, 9) if is_due(step, 8, interval)] == due


def test_a_tensor_of_another_shape_is_refused(tmp_path):
    save_checkpoint(
        tmp_path, owner=OWNER, step=1, weights=np.zeros((2, 2)), optimizer=AdamState.fresh(), keep=1
    )
    with pytest.raises(CheckpointRefused, match=r"a tensor is not float64 \(10, 10\)"):
        resume_latest_strictly(tmp_path)
    assert SHAPE == (10, 10)


def resume_latest_strictly(root):
    return read_checkpoint(checkpoint_folder(root, 1), OWNER)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
