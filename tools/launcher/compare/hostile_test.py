"""Comparisons of documents that somebody wrote to break them."""

import json
import math
import re
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.launcher.compare.beside import beside_digest, beside_document
from tools.launcher.compare.compare_testlib import SAME_SHAPE, compared, example, sentence, side, with_values
from tools.launcher.compare.consequences import compare
from tools.launcher.compare.fields import field_changes
from tools.launcher.compare.identity import identity_change
from tools.launcher.compare.render_json import comparison_json
from tools.launcher.compare.render_markdown import MOST_CHARACTERS, markdown_lines
from tools.launcher.compare.render_text import field_lines, text_lines
from tools.launcher.compare.side import identity_content
from tools.launcher.compare.wording import change_text
from tools.launcher.documents.canonical import CanonicalEncodingError

DOCUMENT = example("moe-megatron")
LR = "skyrl.trainer.policy.optimizer_config.lr"


def paths(section: dict[str, Any], prefix: str = "") -> list[str]:
    """Every place of a document, sections too."""
    found = []
    for key, value in section.items():
        found.append(prefix + key)
        if isinstance(value, dict):
            found += paths(value, f"{prefix}{key}.")
    return found


NASTY = st.sampled_from(
    [
        None, True, 0, -1, 2, 8.0, 10**300, 1e308, math.nan, -math.inf, "", " ", "8", "null", "dev", "none", "[" * 2000,
        "a|b", "`code`", "<script>alert(1)</script>", "]]>", "\x1b[2J", "\u202egnp.exe", "a\nb", "é", "e\u0301", "x" * 400,
        [], {}, [1, [2]], {"a|b": {"": 1}}, [{"uri": 1}], "\ud800", "*_~$&amp;",
    ]
)  # fmt: skip
DOCUMENTS = st.dictionaries(
    st.sampled_from([*paths(DOCUMENT), "new", "iris.x\n|", "skyrl.a"]), NASTY, max_size=4
).map(
    lambda values: with_values(DOCUMENT, dict(sorted(values.items(), key=lambda item: -item[0].count("."))))
)
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(DOCUMENTS)
def test_a_document_is_equal_to_itself_whatever_it_holds(document):
    comparison = compared(document, document)
    assert comparison.equal and comparison.changes == () and not comparison.identity.changed
    assert {each.verdict for each in comparison.consequences} <= {
        "same",
        "safe",
        "fresh",
        "valid",
        "not_known",
    }


@SETTINGS
@given(DOCUMENTS, DOCUMENTS)
def test_every_form_survives_and_names_each_field_once(before, after):
    comparison = compared(before, after)
    content = json.loads(json.dumps(comparison_json(comparison), allow_nan=False))
    lines = [line.text for line in text_lines(comparison)]
    table = list(markdown_lines(comparison))
    assert all(line.isprintable() for line in (*lines, *table))
    keys = [tuple(field["keys"]) for field in content["fields"]]
    assert len(set(keys)) == len(keys) and keys == [change.keys for change in comparison.changes]
    shown = list(field_lines(comparison))
    folded = sum(
        int(line.path.split()[0]) - 1 for line in shown if line.path.endswith(" addresses and names")
    )
    assert len(shown) + folded >= len(keys)
    rows = [row for row in table if re.match(r"\| [-+~] ", row)]
    assert len(rows) == len(shown) == sum(bool(re.match(r"  [-+~]", line)) for line in lines)
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {5}
    assert not any("<" in row.replace("\\<", "") for row in rows)


@SETTINGS
@given(DOCUMENTS, DOCUMENTS)
def test_the_order_of_the_two_turns_changes_and_nothing_else(before, after):
    forth, back = compared(before, after), compared(after, before)
    assert {change.keys for change in forth.changes} == {change.keys for change in back.changes}
    assert {change.keys for change in forth.identity.fields} == {
        change.keys for change in back.identity.fields
    }
    assert forth.identity.changed == back.identity.changed and forth.equal == back.equal


@SETTINGS
@given(DOCUMENTS, DOCUMENTS)
def test_documents_alone_are_another_recipe_exactly_if_their_identities_differ(before, after):
    try:
        differ = identity_content(before) != identity_content(after)
    except CanonicalEncodingError:
        return
    changes = field_changes(before, after)
    assert identity_change(side(before), side(after), changes).changed == differ


def test_a_value_without_a_digest_hides_no_other_change():
    before = with_values(DOCUMENT, {LR: math.nan})
    comparison = compared(before, with_values(before, {"run.seed": 18, "iris.priority": "x"}))
    assert [change.path for change in comparison.identity.fields] == ["run.seed"]


def test_thousands_of_changes_are_judged_by_their_own_values(monkeypatch):
    """Each by a document with its path alone: with the whole one, the time is the square of the number."""
    sizes = []

    def content(document: dict[str, Any]) -> Any:
        sizes.append(len(json.dumps(document)))
        return identity_content(document)

    monkeypatch.setattr("tools.launcher.compare.identity.identity_content", content)
    lists = [
        with_values(DOCUMENT, {"skyrl.x": [number + more for number in range(3_000)]}) for more in (0, 1)
    ]
    comparison = compared(*lists)
    assert len(comparison.changes) == len(comparison.identity.fields) == 3_000
    assert max(sizes) < 100


def test_a_key_with_dots_is_not_taken_for_a_path():
    before = {**DOCUMENT, "run.seed": 1}
    comparison = compared(before, {**with_values(before, {"run.seed": 18}), "run.seed": 2})
    fields = {tuple(field["keys"]): field["recipe"] for field in comparison_json(comparison)["fields"]}
    assert fields == {("run", "seed"): True, ("run.seed",): False}


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (1, "1", '1 -> "1"'),
        (1, 1.0, "1 -> 1.0"),
        (None, "null", 'null -> "null"'),
        (0.000001, 2e-6, "1e-06 -> 2e-06"),
        ("a b", "a\u200bb", 'a b -> "a\\u200bb"'),
        ("é", "e\u0301", '"\\u00e9" -> "e\\u0301"'),
        ("x" * 300 + "1", "x" * 300 + "2", f"…{'x' * 40}1 -> …{'x' * 40}2"),
        ("x" * 300, "y" * 300, f"{'x' * 160}… -> {'y' * 160}…"),
        ([1, 2], {"a": 1}, '[1, 2] -> {"a": 1}'),
    ],
)
def test_two_values_that_differ_look_different(before, after, text):
    assert change_text(before, after) == text


def test_a_list_of_sections_that_came_is_told_leaf_by_leaf():
    more = {"skyrl.teachers": [{"name": "a", "size": 1}, {"name": "b"}], "skyrl.sizes": [1, 2]}
    lines = [line.text for line in text_lines(compared(DOCUMENT, with_values(DOCUMENT, more)))]
    for line in ("teachers[0].name: a", "teachers[0].size: 1", "teachers[1].name: b", "sizes: [1, 2]"):
        assert f"  +* skyrl.{line}" in lines


def test_a_comment_of_github_has_room_for_a_comparison():
    much = with_values(DOCUMENT, {f"skyrl.x{number}": "y" * 100 for number in range(1000)})
    table = "\n".join(markdown_lines(compared(DOCUMENT, much)))
    assert MOST_CHARACTERS - 1000 < len(table) < 65_536
    assert re.search(r"\n\| … \| \d+ more \| `--format=text` shows all \| \|\n\n</details>$", table)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"skyrl.trainer.placement.colocate_policy_ref": False, "iris.allocation.num_nodes": 12},
            (
                "64 -> 96 on 8 -> 12 x 8 H100: policy 32, reference 32 on the policy's GPUs -> 32 on nodes of its own, "
                "engines 32"
            ),
        ),
        (
            {"skyrl.generator.run_engines_locally": False},
            "64 on 8 x 8 H100: policy 32, reference 32, engines 32 on nodes of their own -> 32 elsewhere; 64 -> 32 used",
        ),
        (
            {"skyrl.generator.speculative_decoding.training.x": 1, "iris.allocation.num_nodes": 9},
            "64 -> 72 on 8 -> 9 x 8 H100: policy 32, reference 32, engines 32, draft training 0 -> 8",
        ),
        (
            {"skyrl.trainer.algorithm.use_kl_loss": False},
            "64 on 8 x 8 H100: policy 32, reference 32 -> 0, engines 32",
        ),
        (
            {"skyrl.generator.num_inference_engines": 3},
            "64 on 8 x 8 H100: policy 32, reference 32, engines 32 -> 24; 64 -> 56 used",
        ),
    ],
)
def test_gpus_by_the_contracts_role_arithmetic(values, words):
    """Worked by hand from typed-spec.md §4, examples C, E and I."""
    assert sentence(compared(DOCUMENT, with_values(DOCUMENT, values)), "GPUs") == ("changed", words)


def test_engines_that_leave_the_policys_gpus_are_a_change():
    smoke = example("smoke-fsdp")
    apart = with_values(
        smoke, {"skyrl.trainer.placement.colocate_all": False, "iris.allocation.num_nodes": 2}
    )
    assert sentence(compared(smoke, apart), "GPUs") == (
        "changed",
        "8 -> 16 on 1 -> 2 x 8 H100: policy 8, reference 0, engines 8 on the policy's GPUs -> 8 on nodes of their own",
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"skyrl.trainer.trajectory_selector.type": "best_of_n"},
            (
                "64 prompts x 8 samples = 512 answers, of which 512 -> 64 rows, at most 4718592 tokens (window 9216); optimizer "
                "steps 1, micro steps in each 32 -> 4"
            ),
        ),
        (
            {"skyrl.trainer.update_epochs_per_batch": 3, "skyrl.trainer.policy_mini_batch_size": 32},
            (
                "64 prompts x 8 samples = 512 rows, at most 4718592 tokens (window 9216); optimizer steps 1 -> 6, micro steps "
                "in each 32 -> 16"
            ),
        ),
        (
            {"skyrl.trainer.train_batch_size": 128, "skyrl.generator.n_samples_per_prompt": 4},
            (
                "64 -> 128 prompts x 8 -> 4 samples = 512 rows, at most 4718592 tokens (window 9216); optimizer steps 1 -> 2, "
                "micro steps in each 32 -> 16"
            ),
        ),
    ],
)
def test_a_step_by_the_contracts_batch_arithmetic(values, words):
    assert sentence(compared(DOCUMENT, with_values(DOCUMENT, values)), "step") == ("changed", words)


def with_input(**values: Any) -> dict[str, Any]:
    return with_values(DOCUMENT, {f"inputs.model.{key}": value for key, value in values.items()})


@pytest.mark.parametrize(
    ("b", "recipes", "identity", "resume"),
    [
        (
            with_input(uri="s3://marin-us-east-02a/tests/qwen06-sft/hf/step-64"),
            "",
            (
                "not_known",
                "the same recipe, unless inputs.model.uri names other content, which takes both graphs to tell; launch",
            ),
            ("not_known", "not known: needs both graphs, whether inputs.model.uri names other content"),
        ),
        (
            with_input(uri="s3://marin-us-east-02a/tests/qwen06-sft/hf/step-64"),
            "12",
            ("changed", "changed by inputs.model.uri: 2026.09.21 cannot mean both"),
            ("refused", "refused under 2026.09.21: ART-17"),
        ),
        (
            with_input(uri="s3://elsewhere/tests/qwen06-sft/hf/step-32"),
            "11",
            ("same", "the same recipe, only the placement moved"),
            ("safe", "safe: B goes on"),
        ),
    ],
)
def test_an_address_is_no_identity_but_may_name_other_content(b, recipes, identity, resume):
    comparison = compared(
        DOCUMENT, b, **{name: digit * 64 for name, digit in zip("ab", recipes, strict=False)}
    )
    for aspect, (verdict, words) in (("identity", identity), ("resume", resume)):
        found = sentence(comparison, aspect)
        assert found[0] == verdict and found[1].startswith(words)
    assert comparison_json(comparison)["recipe_changed"] == {"same": False, "changed": True}.get(identity[0])


def test_an_address_that_moved_with_the_clusters_storage_is_the_same_content():
    """Below the prefix of the outputs of both clusters the place is the same."""
    here, there = (
        with_values(
            with_input(uri=f"{prefix}/team/base/2026.09.01/hf"),
            {"artifacts.export_root": f"{prefix}/users/lab/tests/snow-moe-rl/2026.09.21/exports"},
        )
        for prefix in ("s3://marin-us-east-02a/marin", "s3://other/marin")
    )
    assert sentence(compared(here, there), "identity")[0] == "same"


def test_further_steps_stand_beside_the_document_and_the_ledger_does_not():
    rl = {"kind": "skyrl", "name": "x", "fingerprint": "1"}
    evaluation = {
        "kind": "evaluate",
        "name": "x-eval",
        "stage": "evaluate",
        "version": "1",
        "config": {"episodes": 8},
    }
    graph = {"default_stage": "evaluate", "steps": [rl, evaluation], "pinned": False, "repins": 0}
    pinned = {**graph, "pinned": True, "repins": 1, "steps": [{**rl, "fingerprint": "2"}, evaluation]}
    assert beside_digest(graph) == beside_digest(pinned)
    more = {**graph, "steps": [rl, {**evaluation, "config": {"episodes": 9}}]}
    assert [change.path for change in field_changes(beside_document(graph), beside_document(more))] == [
        "steps.x-eval.config.episodes"
    ]
    assert [beside_document(none) for none in ([], {}, {"steps": 3}, {"steps": [3]})] == [{}, {}, {}, {}]


def test_what_the_graph_says_beside_the_document_is_no_equal_launch():
    graphs = [{"coordinator_timeout_hours": hours, "credentials": ["A", "B"][:hours]} for hours in (1, 2)]
    a, b = (side(DOCUMENT, recipe="1" * 64, beside=graph) for graph in graphs)
    comparison = compare(a, b, SAME_SHAPE)
    assert not comparison.equal and comparison.changes == ()
    assert [line.text for line in text_lines(comparison)][-4:] == [
        "0 fields, 0 of the recipe (*):",
        "2 fields of the graph alone:",
        "  ~  graph.coordinator_timeout_hours: 1 -> 2",
        "  +  graph.credentials[1]: B",
    ]
    assert [field["path"] for field in comparison_json(comparison)["graph_fields"]] == [
        "coordinator_timeout_hours",
        "credentials[1]",
    ]
    # Without the other's graph nothing is known of it.
    assert compare(a, side(DOCUMENT, recipe="1" * 64), SAME_SHAPE).equal


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
