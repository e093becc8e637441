"""The engine: everything at once, in a fixed order, and never an exception."""

import random
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.engine import run_preflight
from tools.launcher.preflight.findings import Finding, PreflightReport
from tools.launcher.preflight.registry import CHECKS
from tools.launcher.preflight.render_text import report_json, report_text
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.testing.subjects import (
    DELETED,
    changed,
    cluster_card,
    dataset_card,
    document,
    model_card,
    pinned_runtime,
    repaired,
)
from tools.launcher.rl.topology import ROLE_PLAN_PATHS

RUNTIME = pinned_runtime()
EXAMPLES = {name: document(name) for name in ("smoke", "moe")}
GSM8K = dataset_card(rows=7473, max_prompt_tokens=512)


def preflight(content: dict[str, Any], **facts: Any):
    return run_preflight(PreflightSubject(document=content, runtime=RUNTIME, **facts), CHECKS)


def ids(content: dict[str, Any], **facts: Any) -> list[str]:
    return [violation.id for violation in preflight(content, **facts).violations]


# --- the engine's own rules -------------------------------------------------------------------


def _toy(
    check_id: str, *findings: Finding, raises: Exception | None = None, implied_by: tuple[str, ...] = ()
):
    def run(_: PreflightSubject):
        yield from findings
        if raises is not None:
            raise raises

    return check(
        check_id,
        f"title of {check_id}",
        area="geometry",
        rule="r",
        prevents="p.",
        inputs=("spec",),
        source="s",
        implied_by=implied_by,
    )(run)


def _finding(path: str, severity: Any = "error") -> Finding:
    return Finding(path=path, message=f"message of {path}", repair="do it", severity=severity)


def _run(*checks: Any):
    return run_preflight(PreflightSubject(document={}), checks)


def test_all_findings_are_reported_by_id_then_path():
    report = _run(_toy("GEO-02", _finding("b"), _finding("a", "warning")), _toy("GEO-01", _finding("z")))
    assert [(v.id, v.path) for v in report.violations] == [("GEO-01", "z"), ("GEO-02", "a"), ("GEO-02", "b")]
    assert [v.path for v in report.errors] == ["z", "b"]
    assert [v.path for v in report.warnings] == ["a"]


def test_a_check_without_its_facts_is_named_and_has_not_passed():
    report = _run(
        _toy("GEO-03", raises=MissingFact("a card")),
        _toy("GEO-02", raises=UnreadableValue("x as int")),
        _toy("GEO-01"),
    )
    assert [(n.id, n.needs) for n in report.not_checked] == [
        ("GEO-02", "a usable value: x as int"),
        ("GEO-03", "a card"),
    ]
    assert report.passed == ("GEO-01",)


def test_what_was_found_before_a_fact_was_missed_is_kept():
    report = _run(_toy("GEO-01", _finding("a"), raises=MissingFact("a card")))
    assert len(report.violations) == len(report.not_checked) == 1


def test_a_consequence_of_an_error_is_left_out():
    cause, effect = _toy("GEO-07", _finding("a")), _toy("GEO-06", _finding("a"), implied_by=("GEO-07",))
    assert [v.id for v in _run(effect, cause).violations] == ["GEO-07"]
    assert [v.id for v in _run(effect, _toy("GEO-07", _finding("a", "warning"))).violations] == [
        "GEO-06",
        "GEO-07",
    ]


def test_what_is_found_in_a_section_that_is_not_there_is_left_out():
    missing = _finding("a").model_copy(update={"section": "a"})
    effects = [_finding("a"), _finding("a.b"), _finding("ab", "warning")]
    report = _run(_toy("GEO-01", missing), _toy("GEO-02", *effects))
    assert [(v.id, v.path) for v in report.violations] == [("GEO-01", "a"), ("GEO-02", "ab")]
    doubtful = missing.model_copy(update={"severity": "warning"})
    assert len(_run(_toy("GEO-01", doubtful), _toy("GEO-02", *effects)).violations) == 4


# --- all checks together ------------------------------------------------------------------------


def test_the_examples_of_the_contract_have_no_error():
    facts = {
        "train_dataset": GSM8K,
        "validation_dataset": dataset_card(validation_rows=1319),
        "model": model_card(tokenizer_size=151669),
        "cluster": cluster_card(max_nodes=32, gpus_per_node=8),
    }
    assert ids(EXAMPLES["smoke"], **facts) == []
    # Its locator is a small dense model as a placeholder; its geometry is that of a mixture of experts.
    experts = {
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "num_hidden_layers": 48,
        "num_experts": 128,
    }
    facts["model"] = model_card(tokenizer_size=151669, **experts)
    assert ids(EXAMPLES["moe"], **facts) == ["BAT-17"]
    assert ids(EXAMPLES["smoke"]) == ids(EXAMPLES["moe"]) == []


_PLACEMENT = "skyrl.trainer.placement."


@pytest.mark.parametrize(
    ("base", "changes", "expected"),
    [
        # One wrong number is one finding wherever one rule explains it.
        ("smoke", {"iris.allocation.num_nodes": 2}, ["GEO-10"]),
        ("moe", {"iris.allocation.num_nodes": 7}, ["GEO-09"]),
        ("smoke", {"skyrl.generator.num_inference_engines": 7}, ["GEO-08"]),
        ("smoke", {"skyrl.trainer.train_batch_size": 8}, ["BAT-10"]),
        ("moe", {"skyrl.generator.inference_engine_expert_parallel_size": 3}, ["GEO-07"]),
        ("moe", {_PLACEMENT + "colocate_policy_ref": False}, ["GEO-14"]),
        (
            "smoke",
            {
                "iris.allocation.num_nodes": 2,
                _PLACEMENT + "policy_num_nodes": 2,
                _PLACEMENT + "ref_num_nodes": 2,
                "skyrl.generator.num_inference_engines": 1,
                "skyrl.generator.inference_engine_tensor_parallel_size": 16,
            },
            ["GEO-05"],
        ),
        # Three wrong numbers are three findings of one run.
        (
            "smoke",
            {
                "iris.allocation.num_nodes": 3,
                "skyrl.trainer.train_batch_size": 40,
                "skyrl.context_budget.request_window_tokens": 100,
            },
            ["BAT-01", "CTX-02", "GEO-10"],
        ),
        ("smoke", {"skyrl.trainer.train_batch_size": "16"}, ["GEO-01"]),
        ("smoke", {"skyrl.trainer.placement": 3}, ["GEO-19"]),
        # A missing section is one finding, whatever every rule asks it for.
        ("smoke", {"skyrl": None}, ["DOC-03"]),
        ("smoke", {"skyrl": DELETED}, ["DOC-03"]),
        ("smoke", {"skyrl": []}, ["DOC-04"]),
        ("smoke", {"skyrl": DELETED, "Skyrl": {"trainer": {}}}, ["DOC-02"]),
        ("smoke", {"inputs": DELETED}, ["DOC-03"]),
        ("smoke", {"inputs": DELETED, "Inputs": {}}, ["DOC-02"]),
        ("smoke", {"inputs": "x"}, ["DOC-04"]),
        ("smoke", {"inputs.model": DELETED}, ["DOC-03"]),
        ("smoke", {"runtime": DELETED}, ["DOC-03"]),
        ("smoke", {"iris": DELETED}, ["DOC-03"]),
        ("smoke", {"artifacts": DELETED}, ["DOC-03"]),
        ("smoke", {"skyrl.generator": []}, ["GEO-19"]),
        ("smoke", {"skyrl.trainer": []}, ["GEO-19"]),
    ],
)
def test_findings_name_the_cause(base, changes, expected):
    assert ids(changed(EXAMPLES[base], changes)) == expected


_NODES, _WIDTH = "iris.allocation.num_nodes", "iris.allocation.gpus_per_node"
_ENGINES = "skyrl.generator.num_inference_engines"


def _nodes(count: int, width: int = 8) -> dict[str, int]:
    return {
        _NODES: count,
        _WIDTH: width,
        _PLACEMENT + "policy_num_nodes": count,
        _PLACEMENT + "ref_num_nodes": count,
        _PLACEMENT + "policy_num_gpus_per_node": width,
        _PLACEMENT + "ref_num_gpus_per_node": width,
    }


_COUNTS = [f"skyrl.{path}" for _, path in ROLE_PLAN_PATHS if "colocate" not in path]


@pytest.mark.parametrize("base", sorted(EXAMPLES))
@pytest.mark.parametrize("path", [_NODES, _WIDTH, *_COUNTS], ids=lambda path: path.rpartition(".")[2])
def test_following_the_repairs_ends_in_a_plan_without_errors(base, path):
    """One wrong number, whichever it is, is put right in at most four rounds of typing repairs."""
    for value in (0, -3, "16", 1.5, True, 1, 2, 3, 5, 6, 7, 9, 12, 24, 40, 64):
        content, rounds = changed(EXAMPLES[base], {path: value}), 0
        while errors := preflight(content).errors:
            rounds += 1
            assert rounds <= 4, (value, [(item.id, item.repair) for item in errors])
            for item in errors:
                after = repaired(content, item.repair)
                assert after is not None, item.repair
                content = after


def test_the_gpu_variant_and_the_cluster_card_do_not_undo_each_others_repairs():
    for changes in (
        {_WIDTH: 8},
        {_PLACEMENT + "policy_num_gpus_per_node": 8},
        {_PLACEMENT + "ref_num_gpus_per_node": 4},
    ):
        content, rounds = changed(EXAMPLES["moe"], {"iris.allocation.gpu_variant": "GB200"} | changes), 0
        while errors := preflight(content).errors:
            rounds += 1
            assert rounds <= 4, [(item.id, item.repair) for item in errors]
            for item in errors:
                content = repaired(content, item.repair) or content


def test_a_colocated_plan_shrinks_to_its_cluster_in_one_round():
    batch = {"skyrl.trainer.train_batch_size": 32, "skyrl.trainer.policy_mini_batch_size": 32}
    content = changed(EXAMPLES["smoke"], _nodes(4) | {_ENGINES: 32} | batch)
    facts = {"cluster": cluster_card(max_nodes=2, gpus_per_node=8)}
    (violation,) = preflight(content, **facts).errors
    assert violation.id == "GEO-25"
    after = repaired(content, violation.repair)
    assert after is not None and preflight(after, **facts).errors == ()


def test_a_value_of_a_wrong_type_is_told_apart_from_a_missing_fact():
    report = preflight(changed(EXAMPLES["smoke"], {"skyrl.trainer.strategy": 5}))
    assert list(report.unusable) == ["skyrl.trainer.strategy as str, it is 5"]
    assert "BAT-03" in report.unusable["skyrl.trainer.strategy as str, it is 5"]
    assert preflight(EXAMPLES["smoke"]).unusable == {}


def test_an_empty_document_is_one_finding():
    assert ids({}) == ["DOC-01"]


# --- any document -------------------------------------------------------------------------------

_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-2, max_value=70),
    st.sampled_from([2**63, -(10**30)]),
    st.floats(),
    st.text(max_size=8),
    st.text(alphabet="\ud800\n\x1b[]./=", max_size=4),
    st.sampled_from(
        [
            "",
            "dev",
            "a-2026.13.01",
            "fully_async",
            "megatron",
            "fsdp2",
            "best_of_n",
            "gb200",
            "filter",
            "hf://a/b",
        ]
    ),
)
_NAMES = sorted(
    {
        part
        for path in (
            "run.id",
            "runtime.entrypoint",
            "iris.allocation.num_nodes.gpus_per_node.gpu_variant",
            "artifacts.export_root",
            "inputs.model.uri.identity.local_path.tokenizer_uri.train_data.validation_data.data_kind.kind.selection",
            "skyrl.trainer.placement.generator.context_budget.teachers.entrypoint.algorithm.policy.ref",
            "resources.colocation_group.source.endpoints.url.placement.critic.path.speculative_decoding.training",
        )
        for part in path.split(".")
    }
)
_KEYS = st.one_of(st.sampled_from(_NAMES), st.text(max_size=5))
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=5)),
    max_leaves=12,
)


def _paths(node: Any, prefix: str = "") -> list[str]:
    if isinstance(node, dict):
        children = [(f"{prefix}.{key}" if prefix else key, value) for key, value in node.items()]
    elif isinstance(node, list):
        children = [(f"{prefix}[{index}]", value) for index, value in enumerate(node)]
    else:
        return []
    return [path for path, value in children for path in (path, *_paths(value, path))]


_EXTRA_PATHS = [
    "skyrl.teachers.t.source",
    "skyrl.teachers.t.resources.num_nodes",
    "skyrl.teachers.t.endpoints",
    "skyrl.trainer.fully_async.num_parallel_generation_workers",
    "skyrl.trainer.fully_async.max_staleness_steps",
    "skyrl.trainer.policy.sequence_parallel_size",
    "skyrl.trainer.trajectory_selector.type",
    "skyrl.trainer.step_wise_training",
    "skyrl.trainer.eval_interval",
    "skyrl.generator.speculative_decoding",
    "skyrl.generator.inference_engine_mp_backend",
    "skyrl.generator.eval_sampling_params.max_generate_length",
    "inputs.train_data[0].selection",
    "inputs.train_data[0].verifier_ref",
]
_CHANGES = {
    name: st.dictionaries(
        st.sampled_from([path for path in _paths(example) if path.count(".") >= 1] + _EXTRA_PATHS),
        _VALUES,
        min_size=1,
        max_size=4,
    )
    for name, example in EXAMPLES.items()
}
_CARDS = st.fixed_dictionaries(
    {},
    optional={
        "train_dataset": st.builds(
            dataset_card,
            rows=st.one_of(st.none(), st.integers(0, 100)),
            max_prompt_tokens=st.one_of(st.none(), st.integers(1, 3000)),
            prompt_token_counts=st.dictionaries(
                st.sampled_from(["100", "512", "0", "999999999"]), st.integers(0, 100)
            ),
        ),
        "validation_dataset": st.builds(
            dataset_card, validation_rows=st.one_of(st.none(), st.integers(0, 100))
        ),
        "model": st.builds(model_card, tokenizer_size=st.one_of(st.none(), st.integers(1, 10**6))),
        "cluster": st.builds(
            cluster_card, max_nodes=st.one_of(st.none(), st.integers(1, 9)), gpus_per_node=st.just(4)
        ),
    },
)
_MANY = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def _lines_of(report: PreflightReport) -> int:
    return 3 * len(report.violations) + bool(report.not_checked or report.checklist) + 1


def _judge(content: dict[str, Any], facts: dict[str, Any]) -> None:
    subject = PreflightSubject(document=content, runtime=RUNTIME, **facts)
    report = run_preflight(subject, CHECKS)
    shuffled = list(CHECKS)
    random.Random(7).shuffle(shuffled)
    assert run_preflight(PreflightSubject(document=content, runtime=RUNTIME, **facts), shuffled) == report
    for violation in report.violations:
        assert violation.message and violation.repair
        assert violation.path or violation.id in ("DOC-01", "DOC-02")  # of the document as a whole
    assert len(report_text(report, subject="it").splitlines()) == _lines_of(report)
    assert report_json(report)["verdict"] == ("reject" if report.errors else "accept")


@_MANY
@given(content=st.dictionaries(_KEYS, _VALUES, max_size=6), facts=_CARDS)
def test_any_document_is_judged(content, facts):
    _judge(content, facts)


@pytest.mark.parametrize("base", sorted(EXAMPLES))
def test_any_change_of_an_example_is_judged(base):
    @_MANY
    @given(changes=_CHANGES[base], facts=_CARDS)
    def judge(changes, facts):
        content = EXAMPLES[base]
        for path, value in changes.items():
            try:
                content = changed(content, {path: value})
            except (TypeError, KeyError, IndexError):
                continue  # an earlier change took the place away
        _judge(content, facts)

    judge()


_ANYTHING: list[Any] = [
    None,
    True,
    0,
    -1,
    1,
    3,
    10**9,
    16**5000,
    0.5,
    float("nan"),
    "",
    "1",
    "\ud800\n",
    [],
    [None],
    {},
    {"a": {}},
]


@pytest.mark.parametrize("base", sorted(EXAMPLES))
@pytest.mark.parametrize("value", _ANYTHING, ids=lambda value: type(value).__name__)
def test_any_value_at_any_place_is_judged(base, value):
    # Every value at one place in five, another fifth for the next value; fuzz_lint tries all of them.
    first = next(index for index, other in enumerate(_ANYTHING) if other is value) % 5
    for path in [*_paths(EXAMPLES[base]), *_EXTRA_PATHS][first::5]:
        report = preflight(changed(EXAMPLES[base], {path: value}))
        assert len(report_text(report, subject="it").splitlines()) == _lines_of(report)


@pytest.mark.parametrize("base", sorted(EXAMPLES))
def test_huge_numbers_everywhere_are_judged_at_once(base):
    for value in (10**9, 999_999_937):
        content = changed(EXAMPLES[base], dict.fromkeys(_COUNTS, value))
        assert len(_COUNTS) == 13 and ids(content)


@_MANY
@given(content=st.dictionaries(_KEYS, _VALUES, max_size=6))
def test_no_runtime_and_no_card_are_no_reason_to_stop(content):
    report = run_preflight(PreflightSubject(document=content), CHECKS)
    assert set(report.passed).isdisjoint(item.id for item in report.not_checked)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
