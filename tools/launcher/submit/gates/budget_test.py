import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.launcher.documents.strict_yaml import DocumentError
from tools.launcher.submit.gates.budget import Budget, BudgetFacts, budget_gate, load_budget, most_gpu_hours


def budget(default: float, **clusters: float) -> Budget:
    ceilings = {"default": default, "clusters": {n.replace("_", "-"): hours for n, hours in clusters.items()}}
    return Budget.model_validate({"schema": 1, "gpu_hours_per_launch": ceilings})


def facts(
    nodes: int = 8, timeout: int = 0, hours: int = 12, cluster: str = "cw-us-east-02a", retries: int = 0
) -> BudgetFacts:
    return BudgetFacts(
        cluster=cluster,
        nodes=nodes,
        gpus_per_node=8,
        job_timeout_seconds=timeout,
        max_retries=retries,
        coordinator_timeout_hours=hours,
    )


def test_above_the_ceiling_the_sum_is_shown():
    gate = budget_gate(facts(), budget(64, cw_us_east_02a=512))
    assert gate.state == "missing"
    assert gate.found == ("8 nodes x 8 GPUs x 12 h = 768 GPU-hours; the ceiling of cw-us-east-02a is 512")
    assert gate.fix == (
        "lower coordinator_timeout_hours or the nodes in the experiment, or have the ceiling raised in "
        "experiments/budget.yaml"
    )


def test_the_jobs_own_deadline_counts_first():
    gate = budget_gate(facts(nodes=1, timeout=5400), budget(11.5))
    assert gate.state == "missing"
    assert gate.found.startswith("1 node x 8 GPUs x 1.5 h = 12 GPU-hours; ")
    assert gate.fix.startswith("lower job_timeout_seconds or the nodes")


def test_each_attempt_has_the_jobs_deadline_anew():
    gate = budget_gate(facts(nodes=2, timeout=1800, retries=1), budget(16))
    assert gate.state == "missing"
    assert gate.found.startswith("2 nodes x 8 GPUs x 6 attempts of 0.5 h = 48 GPU-hours; ")
    assert gate.fix.startswith("lower job_timeout_seconds, max_retries or the nodes in the experiment")


def test_the_coordinator_ends_the_last_attempt():
    gate = budget_gate(facts(nodes=2, timeout=1800, retries=1, hours=2), budget(16))
    assert gate.state == "missing"
    assert gate.found.startswith("2 nodes x 8 GPUs x 2 h = 32 GPU-hours; ")
    assert gate.fix.startswith("lower coordinator_timeout_hours or the nodes in the experiment")


def test_retries_alone_change_nothing():
    """A job without a deadline of its own may use the coordinator's up with one attempt or with many."""
    assert budget_gate(facts(retries=3), budget(64)) == budget_gate(facts(), budget(64))


def test_the_ceiling_itself_is_allowed():
    gate = budget_gate(facts(), budget(64, cw_us_east_02a=768))
    assert (gate.state, gate.fix) == ("passed", "")
    assert gate.found == "8 nodes x 8 GPUs x 12 h = 768 GPU-hours; the ceiling of cw-us-east-02a is 768"


def test_a_cluster_without_a_ceiling_of_its_own_has_the_default():
    gate = budget_gate(facts(cluster="cw-new"), budget(512, cw_us_east_02a=9999))
    assert gate.state == "missing"
    assert gate.found.endswith("; the default ceiling (cw-new has none of its own) is 512")


def test_without_a_budget_nothing_is_known():
    gate = budget_gate(facts(), None)
    assert (gate.state, gate.found) == (
        "missing",
        "no budget file was handed over, so the ceiling is not known",
    )
    assert gate.fix == "launch through the experiment's target, or with --budget=experiments/budget.yaml"


@given(
    nodes=st.integers(1, 500),
    timeout=st.integers(0, 10**6),
    retries=st.integers(0, 3),
    hours=st.integers(1, 999),
    ceiling=st.one_of(st.integers(0, 10**6), st.floats(0, 10**6, allow_nan=False)),
)
def test_the_words_never_contradict_the_answer(nodes, timeout, retries, hours, ceiling):
    asked = facts(nodes=nodes, timeout=timeout, retries=retries, hours=hours)
    gate = budget_gate(asked, budget(ceiling))
    exact = most_gpu_hours(asked)
    assert (gate.state == "passed") == (exact <= Fraction(ceiling))
    shown = Fraction(gate.found.partition(" = ")[2].partition(" GPU-hours")[0])
    assert exact <= shown < exact + Fraction(1, 100)


def test_a_budget_file_is_read():
    text = b"schema: 1\ngpu_hours_per_launch:\n  default: 64\n  clusters: {a: 1.5}\n"
    read = load_budget(text, source="budget.yaml")
    assert read.gpu_hours_per_launch.default == 64 and read.gpu_hours_per_launch.clusters == {"a": 1.5}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("schema: 1\n", "budget.yaml: gpu_hours_per_launch: Field required. Write schema: 1 and gpu_hours"),
        ("schema: 2\ngpu_hours_per_launch: {default: 1}\n", "schema: Input should be 1, got 2"),
        (
            "schema: 1\ngpu_hours_per_launch: {default: -1}\n",
            "gpu_hours_per_launch.default: Input should be greater than or equal to 0, got -1",
        ),
        (
            "schema: 1\ngpu_hours_per_launch: {default: 1, clusters: {a: '2'}}\n",
            "clusters.a: Input should be",
        ),
        ("schema: 1\ngpu_hours_per_launch: {default: .nan}\n", "default: Input should be"),
        ("schema: 1\ngpu_hours_per_launch: {default: true}\n", "default: Input should be"),
        ("schema: 1\ngpu_hours_per_launch: {defualt: 1}\n", "default: Field required"),
        ("schema: 1\ngpu_hours_per_launch: {default: 1}\nmore: 1\n", "more: Extra inputs are not permitted"),
        ("schema: 1\nschema: 1\n", "budget.yaml:2"),
    ],
)
def test_a_wrong_budget_file_names_the_field(text, says):
    with pytest.raises(DocumentError) as raised:
        load_budget(text.encode(), source="budget.yaml")
    assert says in str(raised.value)
    assert str(raised.value).count("default: Input") <= 1, "one number is one problem"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
