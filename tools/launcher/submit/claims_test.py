"""Which versions a launch claims."""

import json
import sys

import pytest

from tools.launcher.submit.claims import version_claims
from tools.launcher.submit.request import LaunchMismatch


def step(address, kind, deps=(), adopted=False, **more):
    name, version = address.split("@")
    facts = {"address": address, "name": name, "version": version, "kind": kind, "deps": list(deps)}
    return facts | {"adopted": adopted, "fingerprint": "a" * 64, "config": {}} | more


def graph(version="2026.11.30", **changes):
    run = f"team/run@{version}"
    return {
        "experiment_name": "run",
        "stages": {"rl": run, "evaluate": "team/score@2026.11.30"},
        "steps": [
            step("model@2026.09.01", "hf_model", adopted=True, fingerprint="1512cff8"),
            step(
                run, "skyrl", ["model@2026.09.01"], config={"runtime_commit": "1" * 40}, compatible=["b" * 64]
            ),
            step("team/score@2026.11.30", "evaluate", [run], fingerprint="e" * 64),
        ],
    } | changes


def claims(content, stage):
    return version_claims(json.dumps(content).encode(), stage=stage, launch_digest="d" * 64)


def test_fixed_versions_that_the_stage_makes_are_claimed():
    (run,) = claims(graph(), "rl")
    assert (run.name, run.version, run.fingerprint) == ("team/run", "2026.11.30", "a" * 64)
    assert (run.runtime_commit, run.launch, run.compatible) == ("1" * 40, "d" * 64, ("b" * 64,))
    assert [claim.name for claim in claims(graph(), "evaluate")] == ["team/run", "team/score"]
    assert claims(graph(), "import") == ()


def test_what_may_change_is_not_claimed():
    assert claims(graph("dev"), "rl") == claims(graph("smoke-dev"), "rl") == ()


@pytest.mark.parametrize(
    ("content", "stage", "problem"),
    [
        (graph(steps=[]), "rl", "StopIteration"),
        (
            graph(
                steps=[step("team/run@2026.11.30", "skyrl", config={"runtime_commit": "1"}, fingerprint="x")]
            ),
            "rl",
            "fingerprint",
        ),
    ],
)
def test_a_graph_of_another_making_is_refused(content, stage, problem):
    with pytest.raises(
        LaunchMismatch, match=f"lacks what a claim of its versions needs.*{problem}.*Build the exp"
    ):
        claims(content, stage)


def test_a_stage_that_the_graph_has_not_is_refused():
    with pytest.raises(LaunchMismatch, match="run has no stage 'sft'. Its stages are import, rl, evaluate"):
        claims(graph(), "sft")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
