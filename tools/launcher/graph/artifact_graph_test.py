import sys

import pytest

from tools.launcher.documents.canonical import CanonicalEncodingError
from tools.launcher.graph.artifact_graph import (
    address_conflicts,
    build_graph,
    mutable_dependencies,
    nested_outputs,
    steps_below,
)
from tools.launcher.graph.fingerprint import step_fingerprint, step_identity
from tools.launcher.graph.stages import needed_by, other_stages
from tools.launcher.graph.step import ArtifactStep


def step(name, version="2026.01.15", kind="dataset", deps=(), config=None, **facts):
    values = {"override_path": None, "recorded_fingerprint": None, "expected_fingerprint": None} | facts
    return ArtifactStep(
        name=name, version=version, kind=kind, deps=tuple(deps), config=config or {}, **values
    )


def test_dependencies_come_first_and_once():
    data = step("data")
    model = step("model", kind="hf_model", deps=[data])
    run = step("run", kind="skyrl", deps=[model, data])
    graph = build_graph([run])
    assert [s.name for s in graph.steps] == ["data", "model", "run"]
    assert graph.stages == {
        "import": ("data@2026.01.15", "model@2026.01.15"),
        "rl": ("run@2026.01.15",),
    }
    assert graph.last_steps == {"rl": "run@2026.01.15"}
    assert [s.name for s in steps_below(run)] == ["model", "data"]


def test_a_stage_ends_at_all_steps_of_its_kinds():
    """Of two evaluations side by side only the later was made."""
    run = step("run", kind="skyrl", deps=[step("data"), step("model", kind="hf_model")])
    held_out = step("held-out")
    scores = [
        step("first", kind="evaluate", deps=[run]),
        step("second", kind="evaluate", deps=[run, held_out]),
    ]
    graph = build_graph(scores)
    assert {
        stage: [address.partition("@")[0] for address in ends] for stage, ends in graph.stages.items()
    } == {
        "import": ["data", "model", "held-out"],
        "rl": ["run"],
        "evaluate": ["first", "second"],
    }
    assert list(graph.stages) == ["import", "rl", "evaluate"]
    deps = {one.address: [dep.address for dep in one.deps] for one in graph.steps}
    assert needed_by(graph.stages["rl"], deps) == {run.address, *deps[run.address]}
    assert needed_by(graph.stages["import"], deps) == {*graph.stages["import"]}
    assert needed_by(graph.stages["evaluate"], deps) == deps.keys()


def test_a_stage_that_there_is_not_gets_the_others_and_why():
    ends = {"import": ("data@1",), "rl": ("run@1",)}
    assert other_stages("sft", ends) == "Its stages: import, rl"
    assert other_stages("export", ends) == (
        "Its stages: import, rl. The export belongs to rl: the launcher that trains exports as its last act "
        "(export_hf=True), and refuses to start again once its terminal manifest is written"
    )


def test_a_fingerprint_moves_with_config_and_deps_only():
    base = step("run", kind="skyrl", deps=[step("data", recorded_fingerprint="425a569b")], config={"seed": 1})
    same = base.model_copy(update={"override_path": "s3://elsewhere/run"})
    assert step_fingerprint(base) == step_fingerprint(same)
    assert len(step_fingerprint(base)) == 64
    others = [
        base.model_copy(update={"config": {"seed": 2}}),
        base.model_copy(update={"deps": (step("data", recorded_fingerprint="425a569c"),)}),
        base.model_copy(
            update={"deps": (step("data", version="2026.01.16", recorded_fingerprint="425a569b"),)}
        ),
    ]
    assert len({step_fingerprint(s) for s in [base, *others]}) == 4


def test_an_existing_artifact_keeps_the_fingerprint_of_its_record():
    existing = step("tests/qwen06-sft", "2026.09.01", "hf_model", recorded_fingerprint="1512cff8")
    assert step_identity(existing) == "tests/qwen06-sft@2026.09.01:1512cff8"


def test_a_value_without_identity_is_refused():
    with pytest.raises(CanonicalEncodingError, match="has no stable identity"):
        step_fingerprint(step("run", config={"f": {1}}))


def test_mutable_dependencies_are_found_through_others():
    moving = step("data", "dev")
    model = step("model", "smoke-dev", "hf_model", [moving])
    run = step("run", kind="skyrl", deps=[model])
    assert [(a.name, b.name) for a, b in mutable_dependencies(build_graph([run]))] == [
        ("run", "model"),
        ("run", "data"),
    ]
    assert mutable_dependencies(build_graph([model])) == []


def test_conflicts_and_nesting_are_found():
    a = step("team/a")
    b = step("team/a", "2026.01.16")
    inner = step("team/a/2026.01.15/exports")
    graph = build_graph([step("run", kind="skyrl", deps=[a, b, inner])])
    assert [(x.address, y.address) for x, y in address_conflicts(graph)] == [
        ("team/a@2026.01.15", "team/a@2026.01.16")
    ]
    found = nested_outputs(graph, "s3://bucket/marin")
    assert [(x.name, y.name) for x, y, _, _ in found] == [("team/a", "team/a/2026.01.15/exports")]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
