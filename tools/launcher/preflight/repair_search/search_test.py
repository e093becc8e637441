"""The search as a whole: every proposal passes, the nearest comes first, bounds hold."""

import random
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.preflight.engine import run_preflight
from tools.launcher.preflight.findings import PreflightReport, Proposal
from tools.launcher.preflight.geometry import divisors
from tools.launcher.preflight.judge import judge
from tools.launcher.preflight.registry import CHECKS
from tools.launcher.preflight.repair_search import search
from tools.launcher.preflight.repair_search.plan import PATHS
from tools.launcher.preflight.repair_search.search import propose
from tools.launcher.preflight.subject import PreflightSubject, readable_count
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

RUNTIME = pinned_runtime()
EXAMPLES = {name: document(name) for name in ("smoke", "moe")}
_AREA = {check.id: check.area for check in CHECKS}
_KL = "skyrl.trainer.algorithm.use_kl_loss"


def _subject(base: str, changes: dict[str, Any], **facts: Any) -> PreflightSubject:
    return PreflightSubject(document=changed(EXAMPLES[base], changes), **{"runtime": RUNTIME} | facts)


def _set(**values: Any) -> dict[str, Any]:
    return {PATHS[name]: value for name, value in values.items()}


def _after(subject: PreflightSubject, proposal: Proposal) -> PreflightSubject:
    content = repaired(subject.document, proposal.repair)
    assert content is not None, proposal.repair
    return subject.with_document(content)


def _own(report: PreflightReport) -> set[str]:
    return {item.id for item in report.errors if _AREA[item.id] in search.AREAS}


def _moves(proposal: Proposal) -> dict[str, Any]:
    names = {path: name for name, path in PATHS.items()}
    return {names[change.path]: change.new for change in proposal.changes}


def _assert_sound(
    subject: PreflightSubject, report: PreflightReport, unsettled: frozenset[str] = frozenset()
) -> None:
    """What every proposal owes, whatever was broken."""
    assert len(report.proposals) <= search.MOST_PROPOSALS
    before = {item.id for item in report.errors}
    for proposal in report.proposals:
        after = run_preflight(_after(subject, proposal), CHECKS)
        assert _own(after) <= unsettled, (proposal.repair, after.errors)
        assert {item.id for item in after.errors} <= before
        assert set(proposal.remaining) == {item.id for item in after.errors}
        warned = {*proposal.new_warnings, *proposal.remaining_warnings}
        assert warned == {item.id for item in after.warnings}
        assert all(name in proposal.reason for name in warned)
        assert not after.unusable.keys() - report.unusable.keys()
        pasted = load_yaml_mapping(proposal.role_plan.encode(), source="proposal")
        assert _counted(_merged(subject.document, pasted)) == _counted(_after(subject, proposal).document)
    assert len({proposal.repair for proposal in report.proposals}) == len(report.proposals)
    warnings = [len(_counted_warnings(proposal)) > 0 for proposal in report.proposals]
    assert warnings == sorted(warnings)


def _counted_warnings(proposal: Proposal) -> list[str]:
    """Those that other numbers may not have."""
    remaining = [name for name in proposal.remaining_warnings if _AREA[name] in search.AREAS]
    return [*proposal.new_warnings, *remaining]


def _counted(content: dict[str, Any]) -> dict[str, Any]:
    """The document with the allocation's counts as the launcher reads them; a proposal writes numbers for text."""
    allocation = content["iris"]["allocation"]
    counts = {name: readable_count(allocation.get(name)) for name in ("num_nodes", "gpus_per_node")}
    return content | {"iris": content["iris"] | {"allocation": allocation | counts}}


def _merged(content: Any, over: Any) -> Any:
    if not isinstance(content, dict) or not isinstance(over, dict):
        return over
    return content | {key: _merged(content.get(key), value) for key, value in over.items()}


# --- broken plans of every kind -----------------------------------------------------------------

# (what is wrong, what the first proposal changes); the arithmetic is in the contract, typed-spec.md §4.
_RACKED: dict[str, Any] = {"iris.allocation.gpu_variant": "GB200"}
_GB200 = cluster_card(max_nodes=216, gpus_per_node=4, schedulable_rack_nodes=16, gpu_variant="GB200")
_H100 = cluster_card(max_nodes=32, gpus_per_node=8, gpu_variant="H100")
_GRUG = model_card(
    num_attention_heads=20,
    num_key_value_heads=5,
    num_hidden_layers=26,
    num_experts=256,
    vocab_size=128256,
    max_position_embeddings=262144,
)


def _all_nodes(count: int, width: int = 8, **values: int) -> dict[str, Any]:
    sizes = {"num_nodes": count, "policy_nodes": count, "reference_nodes": count, "gpus_per_node": width}
    return _set(
        **sizes | {"policy_width": width, "reference_width": width, "engines": count * width} | values
    )


@pytest.mark.parametrize(
    ("base", "changes", "facts", "first"),
    [
        # One wrong number.
        ("smoke", _set(engines=4, tp=3), {}, {"tp": 2}),
        ("smoke", _set(tp=2), {}, {"engines": 4}),
        ("smoke", _set(num_nodes=2), {}, {"num_nodes": 1}),
        ("moe", _set(num_nodes=7), {}, {"num_nodes": 8}),
        ("moe", _set(num_nodes=9), {}, {"num_nodes": 8}),
        ("moe", _set(ep=4), {}, {"ep": 8}),
        ("moe", _set(dp=16, ep=16, engines=2), {}, {"num_nodes": 6, "dp": 8, "ep": 8}),
        ("smoke", _set(train=8, mini=1), {}, {"mini": 2}),
        ("smoke", _set(train=12, mini=12, micro=4), {}, {"mini": 16, "train": 16}),
        ("smoke", _set(train=20, mini=10, samples=1) | {"skyrl.trainer.algorithm.advantage_estimator": "reinforce++"},
         {}, {"mini": 8, "train": 24}),
        ("smoke", _set(gpus_per_node=4), {}, {"gpus_per_node": 8}),
        ("smoke", _set(samples=1), {}, {"samples": 2}),
        ("smoke", _set(colocate_policy_ref=False), {}, {"colocate_policy_ref": True}),
        # Values that no check can use.
        ("smoke", _set(engines=0), {}, {"engines": 8}),
        ("smoke", _set(train="16"), {}, {"train": 16}),
        ("smoke", _set(num_nodes=2**63), {}, {"num_nodes": 1}),
        ("smoke", _set(micro=[1]), {}, {"micro": 1}),
        ("moe", _set(pp=0), {}, {"pp": 1}),
        ("smoke", _set(samples=0), {}, {"samples": 2}),
        # GEO-02 with GEO-08: the policy shrinks to the allocation, the engines with it, or the allocation grows.
        ("smoke", _set(policy_nodes=2, reference_nodes=2, engines=8), {}, {"policy_nodes": 1, "reference_nodes": 1}),
        ("smoke", _set(policy_nodes=2, reference_nodes=2, engines=16), {}, {"num_nodes": 2}),
        ("smoke", _set(policy_nodes=3, reference_nodes=2, engines=20), {},
         {"policy_nodes": 2, "num_nodes": 2, "engines": 16}),
        # GEO-21: 17 and 18 nodes fit no racks. The batches of the moe example stay legal.
        ("smoke", _RACKED | _all_nodes(17, 4, train=320, mini=64), {"cluster": _GB200},
         {"num_nodes": 16, "policy_nodes": 16, "reference_nodes": 16, "engines": 64}),
        ("smoke", _RACKED | _all_nodes(18, 4, train=160, mini=160), {"cluster": _GB200},
         {"num_nodes": 20, "policy_nodes": 20, "reference_nodes": 20, "engines": 80}),
        ("moe", _RACKED | _all_nodes(4, 4, policy_nodes=8, reference_nodes=8, num_nodes=18, engines=10, dp=4, ep=4),
         {"cluster": _GB200}, {"num_nodes": 20, "engines": 12}),
        ("moe", _RACKED | _all_nodes(8, 4, num_nodes=17, engines=8, dp=4, ep=4), {"cluster": _GB200}, {"num_nodes": 16}),
        # GEO-21 with GEO-14: a separate reference moves the sum from one illegal gang to another.
        ("moe",
         _RACKED | _all_nodes(8, 4, num_nodes=17, engines=2, dp=4, ep=4, colocate_policy_ref=False, reference_nodes=8),
         {"cluster": _GB200}, {"num_nodes": 20, "engines": 4}),
        ("smoke", _RACKED | _set(gpus_per_node=8), {},
         {"gpus_per_node": 4, "policy_width": 4, "reference_width": 4, "engines": 4}),
        # GEO-25: colocated and disaggregated.
        ("smoke", _all_nodes(40, train=320, mini=320), {"cluster": _H100},
         {"num_nodes": 32, "policy_nodes": 32, "reference_nodes": 32, "engines": 256, "train": 1280}),
        ("moe", _set(), {"cluster": cluster_card(max_nodes=6, gpus_per_node=8)}, {"num_nodes": 6, "engines": 2}),
        # Heads and KV heads of the Grug 67B: TP 1 or 5 in a node of 8.
        ("moe", _set(tp=4, dp=2, ep=4, engines=4), {"model": _GRUG}, {"num_nodes": 6, "tp": 1, "dp": 4}),
        # Rounding: 5 engines of 3 GPUs need 3 nodes, not 15 / 8.
        ("smoke", _set(colocate_all=False, num_nodes=3, engines=5, tp=3), {}, {"engines": 4, "tp": 4}),
        # Data.
        ("smoke", {}, {"train_dataset": dataset_card(rows=12)}, {"train": 12, "mini": 12}),
        # fully_async: T == M, and a generation worker for each prompt.
        ("moe",
         _set(train=128, workers=64) | {"skyrl.entrypoint": "fully_async", "skyrl.generator.batched": False,
                                        "skyrl.generator.enable_http_endpoint": True,
                                        "skyrl.generator.chat_template.name_or_path": "t",
                                        "skyrl.trainer.fully_async.max_staleness_steps": 1},
         {}, {"train": 64}),
        # Megatron: forward and training micro batch.
        ("moe", _set(micro=2), {}, {"micro": 1}),
        ("moe", _set(forward=4), {}, {"forward": 1}),
        # lcm of policy and separate reference.
        ("moe",
         _set(num_nodes=11, reference_nodes=3, train=32, mini=32, colocate_policy_ref=False)
         | {"skyrl.trainer.ref.megatron_config.pipeline_model_parallel_size": 1}, {}, {"train": 96}),
        # Several numbers at once.
        ("smoke", _set(num_nodes=3, train=40), {}, {"num_nodes": 1, "train": 48}),
        ("moe", _set(num_nodes=7, ep=3, micro=3), {}, {"num_nodes": 8, "ep": 8, "micro": 1}),
    ],
)  # fmt: skip
def test_the_nearest_settings_without_a_warning_come_first(base, changes, facts, first):
    subject = _subject(base, changes, **facts)
    report = judge(subject, CHECKS)
    assert report.proposals, report.no_proposal
    _assert_sound(subject, report)
    assert _moves(report.proposals[0]) == first, [proposal.repair for proposal in report.proposals]


@pytest.mark.parametrize(
    ("base", "changes", "facts", "named", "first"),
    [
        ("smoke", _set(tp=8, engines=1) | {"skyrl.model_num_attention_heads": 42}, {}, "CTX-08",
         {"engines": 4, "tp": 2}),
        ("moe", {}, {"model": model_card(num_experts=60)}, "CTX-09", {"ep": 1}),
        ("smoke", _set(tp=2, engines=4) | {"skyrl.generator.backend": "sglang"}, {}, "BKD-04",
         {"engines": 8, "tp": 1}),
        ("smoke", _set(gpus_per_node=16, policy_width=16, reference_width=16, engines=16), {"cluster": _H100},
         "EXE-06", {"gpus_per_node": 8, "policy_width": 8, "reference_width": 8, "engines": 8}),
        ("smoke",
         {"skyrl.entrypoint": "fully_async", "skyrl.generator.enable_http_endpoint": True,
          "skyrl.generator.batched": False, "skyrl.generator.chat_template.name_or_path": "t",
          "skyrl.trainer.fully_async.num_parallel_generation_workers": 16},
         {}, "OBJ-14", {"num_nodes": 2, "colocate_all": False}),
    ],
)  # fmt: skip
def test_an_error_of_another_area_at_a_number_of_the_plan_starts_a_search(base, changes, facts, named, first):
    subject = _subject(base, changes, **facts)
    report = judge(subject, CHECKS)
    assert named in {item.id for item in report.errors}
    _assert_sound(subject, report)
    assert _moves(report.proposals[0]) == first, [proposal.repair for proposal in report.proposals]
    assert named not in report.proposals[0].remaining


def test_an_accepted_document_is_not_searched():
    subject = _subject("moe", {})
    report = run_preflight(subject, CHECKS)
    assert propose(subject, CHECKS, report) == search.SearchResult((), None, 0, 0)
    assert judge(subject, CHECKS) == report
    warned = _subject("smoke", _set(train=20, mini=20))
    assert judge(warned, CHECKS) == run_preflight(warned, CHECKS)


def test_errors_of_other_areas_alone_are_not_searched():
    report = judge(_subject("smoke", {"inputs.model.tokenizer_revision": "main"}), CHECKS)
    assert report.errors and report.proposals == () and report.no_proposal is None


def test_a_proposal_says_which_errors_remain():
    subject = _subject("smoke", _set(engines=7) | {"inputs.model.tokenizer_revision": "main"})
    report = judge(subject, CHECKS)
    _assert_sound(subject, report)
    assert report.proposals[0].remaining == ("ART-08",)
    assert report.proposals[0].reason == "1 change, 8 GPUs; ART-08 remains"


def test_what_no_number_settles_does_not_stop_the_search():
    subject = _subject("smoke", _set(engines=7) | {"skyrl.trainer.critic.model.path": "team/critic"})
    report = judge(subject, CHECKS)
    _assert_sound(subject, report, frozenset({"GEO-15"}))
    assert report.proposals[0].remaining == ("GEO-15",)


def test_a_new_warning_is_named():
    first = judge(_subject("smoke", {}, train_dataset=dataset_card(rows=12)), CHECKS).proposals[0]
    assert first.reason == "2 changes, 8 GPUs, with warnings BAT-14, BAT-17, OBJ-08"
    assert [note.split(" comes with it: ")[0] for note in first.notes] == ["BAT-14", "BAT-17", "OBJ-08"]
    assert first.notes[0].startswith("BAT-14 comes with it: 4 of 12 prompts are dropped in each batch: ")


def test_a_warning_that_remains_is_named_and_those_without_come_first():
    """One change is nearer than two, but its warning would be there after pasting."""
    subject = _subject("smoke", _set(train=12, mini=12, micro=4))
    report = judge(subject, CHECKS)
    _assert_sound(subject, report)
    assert [item.id for item in report.warnings] == ["BAT-14"]
    *clean, warned = report.proposals
    assert clean and all("BAT-14" not in proposal.reason for proposal in clean)
    assert warned.reason == "1 change, 8 GPUs; warning BAT-14 remains"
    assert warned.notes == ()  # it says what the report says


def test_what_a_remaining_warning_says_under_other_numbers_is_told():
    subject = _subject("smoke", _set(colocate_all=False, num_nodes=3, engines=5, tp=3))
    told = {proposal.reason: proposal.notes for proposal in judge(subject, CHECKS).proposals}
    assert told == {
        "2 changes, 24 GPUs": (),
        "1 change, 24 GPUs; warning GEO-22 remains": (),
        "1 change, 24 GPUs; warning GEO-24 remains": (
            "GEO-24 remains: 5 engines at 4 per node leave room for 3 more on the last rollout node",
        ),
    }


@pytest.mark.parametrize(
    ("changes", "runtime", "why"),
    [
        (
            _set(engines=7) | {"skyrl.trainer.strategy": 5},
            RUNTIME,
            "without skyrl.trainer.strategy as str, it is 5",
        ),
        (_set(engines=7, colocate_all="yes"), RUNTIME, "placement.colocate_all as bool, it is 'yes'"),
        ({"skyrl.trainer.placement": 3}, RUNTIME, "without skyrl.trainer.placement"),
        (_set(engines=7), None, "a runtime manifest"),
    ],
)
def test_without_a_usable_value_it_says_which(changes, runtime, why):
    subject = _subject("smoke", changes, runtime=runtime)
    found = propose(subject, CHECKS, run_preflight(subject, CHECKS))
    if found.why_none is None:  # nothing of geometry and batches could be judged, or no number settles it
        assert not _own(run_preflight(subject, CHECKS)) - {"GEO-19"}
    else:
        assert why in found.why_none
    assert found.proposals == ()


def test_where_nothing_is_legal_it_says_so_within_its_bounds():
    for rows in (0, 3):
        subject = _subject("smoke", {}, train_dataset=dataset_card(rows=rows))
        found = propose(subject, CHECKS, run_preflight(subject, CHECKS))
        if not found.proposals:
            assert found.why_none is not None and "as long as recipe" in found.why_none
        assert found.candidates <= 3 * search.MOST_CANDIDATES and found.judged <= 3 * search.MOST_JUDGED


def test_the_colocation_changes_only_where_nothing_else_is_legal():
    facts = {"cluster": cluster_card(max_nodes=1, gpus_per_node=8)}
    subject = _subject("smoke", _set(colocate_all=False, num_nodes=2, engines=8), **facts)
    report = judge(subject, CHECKS)
    _assert_sound(subject, report)
    assert _moves(report.proposals[0]) == {"num_nodes": 1, "colocate_all": True}


def test_remote_engines_and_exports_keep_their_engines():
    remote = _subject("smoke", _set(num_nodes=3) | {"skyrl.generator.run_engines_locally": False})
    export = _subject("moe", _set(num_nodes=8) | {"run.mode": "checkpoint_export"})
    for subject, first in ((remote, {"num_nodes": 1}), (export, {"num_nodes": 4})):
        report = judge(subject, CHECKS)
        _assert_sound(subject, report)
        assert _moves(report.proposals[0]) == first


def test_engines_over_nodes_are_kept_where_the_back_end_allows_them():
    subject = _subject(
        "moe",
        _set(num_nodes=7, dp=16, ep=16, engines=2) | {"skyrl.generator.inference_engine_mp_backend": True},
    )
    report = judge(subject, CHECKS)
    _assert_sound(subject, report)
    kept = next(proposal for proposal in report.proposals if _moves(proposal) == {"num_nodes": 8})
    assert kept.reason == "1 change, 64 GPUs; warning GEO-04 remains"


def test_what_the_document_leaves_to_the_launcher_stays_left():
    absent = {
        PATHS["reference_nodes"]: DELETED,
        PATHS["reference_width"]: DELETED,
        PATHS["policy_width"]: DELETED,
    }
    subject = _subject("smoke", absent | _set(engines=3))
    report = judge(subject, CHECKS)
    assert _moves(report.proposals[0]) == {"engines": 8}
    filled = _subject("moe", {PATHS["reference_nodes"]: DELETED, _KL: True})
    assert _moves(judge(filled, CHECKS).proposals[0]) == {"reference_nodes": 4}
    engines = _subject("moe", {PATHS["engines"]: DELETED})
    assert _moves(judge(engines, CHECKS).proposals[0])["engines"] == 4


def test_roles_larger_than_the_cluster_shrink_with_a_reference_of_their_own():
    apart = {PATHS["colocate_policy_ref"]: False, _KL: True}
    sizes = _set(policy_nodes=64, reference_nodes=64, num_nodes=100)
    for offloaded in (True, False):
        content = apart | sizes | {"skyrl.trainer.offload_optimizer_during_rollouts": offloaded}
        subject = _subject("moe", content, cluster=_H100)
        report = judge(subject, CHECKS)
        _assert_sound(subject, report)
        # An optimizer that is offloaded in rollouts keeps the engines apart (BKD-16).
        assert report.proposals and not any("colocate_all" in _moves(item) for item in report.proposals)


# --- properties ---------------------------------------------------------------------------------

_MANY = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@st.composite
def _legal(draw: st.DrawFn) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A legal plan: example, changes, cards."""
    width = draw(st.sampled_from([4, 8]))
    base = draw(st.sampled_from(["smoke", "moe"]))
    facts: dict[str, Any] = {}
    changes: dict[str, Any] = {}
    if width == 4:
        changes |= _RACKED
        facts |= draw(st.sampled_from([{}, {"cluster": _GB200}]))
    else:
        facts |= draw(st.sampled_from([{}, {"cluster": _H100}]))
    facts |= draw(st.sampled_from([{}, {"model": model_card(num_experts=128)}]))
    tp = draw(st.sampled_from(divisors(width)))
    dp = draw(st.sampled_from(divisors(width // tp)))
    values = {"gpus_per_node": width, "policy_width": width, "reference_width": width, "tp": tp, "dp": dp}
    values["ep"] = draw(st.sampled_from(sorted({1, tp * dp})))
    if base == "smoke":
        nodes = draw(st.integers(1, 12))
        ranks = nodes * width
        values |= {"num_nodes": nodes, "policy_nodes": nodes, "reference_nodes": nodes}
        values |= {"engines": nodes * width // (tp * dp)}
    else:
        nodes = draw(st.integers(1, 3)) * 16 // width
        ranks = nodes * width // 2
        rollout = draw(st.integers(1, 4))
        total = nodes + rollout
        if draw(st.booleans()):
            values |= {"colocate_policy_ref": False}
            total += nodes
        values |= {"policy_nodes": nodes, "reference_nodes": nodes, "num_nodes": total}
        values |= {"engines": rollout * (width // (tp * dp))}
    values["samples"] = draw(st.sampled_from([2, 4, 8]))
    values["mini"] = ranks * draw(st.integers(1, 3))
    values["train"] = values["mini"] * draw(st.integers(1, 3))
    if base == "smoke":
        values["micro"] = draw(st.sampled_from([1, 2, 4]))
        assume(values["mini"] * values["samples"] // ranks % values["micro"] == 0)
        assume(values["mini"] % values["micro"] == 0)
    changes |= _set(**values)
    assume(not _own(run_preflight(_subject(base, changes, **facts), CHECKS)))
    return base, changes, facts


_COUNTS = [
    name for name in PATHS if name not in ("colocate_all", "colocate_policy_ref", "forward", "workers")
]
_WRONG: st.SearchStrategy[Any] = st.one_of(
    st.integers(-2, 40), st.sampled_from([64, 100, 10**9, 10**20, 2.5, "8", "many", None, True, []])
)
_BREAKS = st.dictionaries(st.sampled_from(_COUNTS), _WRONG, min_size=1, max_size=4)


@_MANY
@given(legal=_legal(), breaks=_BREAKS)
def test_every_proposal_for_a_broken_plan_passes(legal, breaks):
    base, changes, facts = legal
    subject = _subject(base, changes | _set(**breaks), **facts)
    report = run_preflight(subject, CHECKS)
    found = propose(subject, CHECKS, report)
    assert found.candidates <= 3 * search.MOST_CANDIDATES and found.judged <= 3 * search.MOST_JUDGED
    judged = judge(subject, CHECKS)
    assert judged.proposals == found.proposals
    _assert_sound(subject, judged)
    if _own(report):
        assert found.proposals, found.why_none
        assert len(found.proposals[0].changes) <= len(breaks) + 2, found.proposals[0].repair


_ONE_WRONG = [name for name in _COUNTS if name != "samples"]


@_MANY
@given(legal=_legal(), name=st.sampled_from(_ONE_WRONG), value=st.integers(-2, 100))
def test_one_wrong_number_is_one_change(legal, name, value):
    """Taking the number back is legal, so something that changes one number is found."""
    base, changes, facts = legal
    subject = _subject(base, changes | _set(**{name: value}), **facts)
    report = judge(subject, CHECKS)
    if _own(report):
        assert report.proposals, report.no_proposal
        assert len(report.proposals[0].changes) == 1, report.proposals[0].repair


_ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1,
    3,
    999_999_937,
    10**9,
    16**5000,
    0.5,
    float("nan"),
    "",
    "1",
    [],
    [None],
    {},
    {"a": {}},
]


def _places(node: Any, prefix: str = "") -> list[str]:
    if not isinstance(node, dict):
        return []
    named = [(f"{prefix}.{key}" if prefix else key, value) for key, value in node.items()]
    return [path for place, value in named for path in (place, *_places(value, place))]


_PLACES = sorted(
    {
        *(place for example in EXAMPLES.values() for place in _places(example) if "." in place),
        *PATHS.values(),
        "skyrl.teachers.t.resources.num_nodes",
        "skyrl.model_num_attention_heads",
        "skyrl.generator.inference_engine_decode_context_parallel_size",
        "skyrl.generator.inference_engine_mp_backend",
        "skyrl.trainer.policy.fsdp_config.fsdp_size",
        "skyrl.trainer.policy.sequence_parallel_size",
        "skyrl.trainer.algorithm.dynamic_sampling.type",
        "skyrl.trainer.algorithm.group_advantage_min_size",
    }
)


@_MANY
@given(
    base=st.sampled_from(sorted(EXAMPLES)),
    wrong=st.dictionaries(st.sampled_from(_PLACES), st.sampled_from(_ODD), min_size=1, max_size=3),
    engines=st.integers(3, 9),
)
def test_any_value_at_any_place_is_survived(base, wrong, engines):
    content = changed(EXAMPLES[base], _set(engines=engines))
    for path, value in wrong.items():
        try:
            content = changed(content, {path: value})
        except (TypeError, KeyError, IndexError):
            continue  # an earlier change took the place away
    subject = PreflightSubject(document=content, runtime=RUNTIME)
    report = run_preflight(subject, CHECKS)
    found = propose(subject, CHECKS, report)
    assert found.candidates <= 3 * search.MOST_CANDIDATES and found.judged <= 3 * search.MOST_JUDGED
    for proposal in found.proposals:
        after = repaired(content, proposal.repair)
        assert after is not None
        left = run_preflight(PreflightSubject(document=after, runtime=RUNTIME), CHECKS)
        assert {item.id for item in left.errors} <= {item.id for item in report.errors}


@pytest.mark.parametrize("base", sorted(EXAMPLES))
def test_huge_numbers_everywhere_are_survived(base):
    for value in (10**9, 999_999_937, 735_134_400):
        subject = _subject(base, _set(**dict.fromkeys(_COUNTS, value)))
        found = propose(subject, CHECKS, run_preflight(subject, CHECKS))
        assert found.candidates <= 3 * search.MOST_CANDIDATES and (found.proposals or found.why_none)


@_MANY
@given(legal=_legal(), breaks=_BREAKS, seed=st.integers(0, 1000))
def test_the_order_of_checks_and_the_call_change_nothing(legal, breaks, seed):
    base, changes, facts = legal
    content = changes | _set(**breaks)
    shuffled = list(CHECKS)
    random.Random(seed).shuffle(shuffled)
    assert judge(_subject(base, content, **facts), shuffled) == judge(
        _subject(base, content, **facts), CHECKS
    )


@_MANY
@given(legal=_legal(), breaks=_BREAKS)
def test_a_proposal_does_more_than_another_only_to_spare_a_warning(legal, breaks):
    base, changes, facts = legal
    proposals = judge(_subject(base, changes | _set(**breaks), **facts), CHECKS).proposals
    for one in proposals:
        for other in proposals:
            if one is not other and _moves(one).items() <= _moves(other).items():
                assert len(_counted_warnings(other)) < len(_counted_warnings(one))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
