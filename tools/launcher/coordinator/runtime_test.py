"""The commands made from steps, and what their programs get to see."""

import json
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from tools.launcher.coordinator.bundle_for_test import DATA, EVALUATION, MODEL, graph
from tools.launcher.coordinator.graph_file import read_graph
from tools.launcher.coordinator.runtime import (
    NoMaker,
    launcher_environment,
    marinskyrl_argv,
    marinskyrl_runtime,
    rehearsal_runtime,
)
from tools.launcher.documents.canonical import canonical_json

COMMIT = "81ae0ef7033c500207b191a2ae7c3806f6dc78ff"


def _step(address):
    return next(step for step in read_graph(canonical_json(graph())).steps if step.address == address)


def test_the_rehearsals_commands():
    runtime = rehearsal_runtime(("python", "-m", "r"), "file:///tmp/o")
    assert runtime.launch(Path("/a/launch.yaml")) == (
        "python",
        "-m",
        "r",
        "iris",
        "launch",
        "--object-root=file:///tmp/o",
        "--config",
        "/a/launch.yaml",
    )
    model = runtime.import_artifact(_step(MODEL), "Qwen/Q", "abc")
    assert {
        "--kind=hf_model",
        "--relative-path=hf/step-32",
        "--tokenizer-revision=abc",
        "--card=qwen3-0.6b",
    } <= {*model}
    data = runtime.import_artifact(_step(DATA), "Qwen/Q", "abc")
    assert [part for part in data if part.startswith(("--env", "--rel"))] == [
        "--env-class=cat_count",
        "--relative-path=train.parquet",
        "--relative-path=validation.parquet",
    ]
    evaluation = runtime.evaluate(_step(EVALUATION), "s3://b/e")
    assert {"--export=s3://b/e", "--episodes=32", "--seed=5", "--env-class=cat_count"} <= {*evaluation}


def test_an_evaluation_that_lacks_a_number_is_named():
    step = _step(EVALUATION).model_copy(update={"config": json.loads('{"env_class": "gsm8k", "seed": 1}')})
    with pytest.raises(NoMaker, match=f"step {EVALUATION}: its config lacks 'episodes'"):
        rehearsal_runtime(("r",), "file:///o").evaluate(step, "s3://b/e")


def test_the_real_launcher_is_the_pinned_commit_in_an_environment_of_its_own():
    assert marinskyrl_runtime(COMMIT).launch(Path("/a/launch.yaml")) == (
        "uv",
        "run",
        "--isolated",
        "--no-project",
        "--prerelease=allow",
        "--python",
        "3.12",
        "--with",
        f"marinskyrl @ git+https://github.com/marin-community/MarinSkyRL.git@{COMMIT}",
        "marinskyrl",
        "iris",
        "launch",
        "--config",
        "/a/launch.yaml",
    )


@pytest.mark.parametrize("commit", ["main", COMMIT[:12], COMMIT.upper(), COMMIT + "0", ""])
def test_what_pins_nothing_is_refused(commit):
    with pytest.raises(NoMaker) as caught:
        marinskyrl_runtime(commit).launch(Path("/a"))
    assert str(caught.value) == (
        f"runtime.launcher_commit is {commit!r}. It must be a commit of 40 lower-case hex digits: pin the runtime "
        "and build the experiment again"
    )
    with pytest.raises(ValueError, match="It must be a commit"):
        marinskyrl_argv(commit, Path("/a"))


def test_the_real_runtime_makes_nothing_else():
    runtime = marinskyrl_runtime(COMMIT)
    with pytest.raises(
        NoMaker, match=r"the MarinSkyRL launcher makes no hf_model\. Import it first, or adopt"
    ):
        runtime.import_artifact(_step(MODEL), "t", "r")
    with pytest.raises(NoMaker, match="makes no evaluate"):
        runtime.evaluate(_step(EVALUATION), "s3://b/e")


def test_the_real_launcher_sees_the_credentials_and_none_of_our_packages():
    environ = {"PATH": "/bin", "PYTHONPATH": "/ours", "VIRTUAL_ENV": "/ours", "IRIS_TASK_ID": "/s/c/0:0"}
    seen = launcher_environment(marinskyrl_runtime(COMMIT), environ, {"HF_TOKEN": SecretStr("v")})
    assert seen == {"PATH": "/bin", "IRIS_TASK_ID": "/s/c/0:0", "HF_TOKEN": "v"}
    # The stand-in reads what Iris delivered itself: no value is in any environment of a rehearsal.
    stand_in = rehearsal_runtime(("r",), "file:///o", credentials=("HF_TOKEN",))
    assert launcher_environment(stand_in, environ, {"HF_TOKEN": SecretStr("v")}) == environ
    assert stand_in.launch(Path("/a"))[-1] == "--credential=HF_TOKEN"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
