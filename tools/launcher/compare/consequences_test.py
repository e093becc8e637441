import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.launcher.compare.compare_testlib import compared, example, sentence, side, with_values
from tools.launcher.compare.consequences import SmokeComparison, compare
from tools.launcher.compare.render_json import comparison_json
from tools.launcher.compare.render_markdown import markdown_lines
from tools.launcher.compare.render_text import consequence_lines, text_lines
from tools.launcher.compare.sizes import sizes_of
from tools.launcher.preflight.geometry import Geometry

GENERATOR = "skyrl.generator."
TP, ENGINES = GENERATOR + "inference_engine_tensor_parallel_size", GENERATOR + "num_inference_engines"
COMMIT, ROOT, MODE = "runtime.launcher_commit", "artifacts.checkpoint_root", "skyrl.trainer.resume_mode"
OTHER_VERSION = {
    "run.id": "users/lab/tests/qwen06-gsm8k-rl-2026.09.22",
    "artifacts.export_root": "s3://b/users/lab/tests/qwen06-gsm8k-rl/2026.09.22/exports",
    ROOT: "s3://b/checkpoints",
}
NO_SMOKE = SmokeComparison(differences=("engine TP is 4 here, 2 in the smoke run",), unknown="")

TP2 = with_values(example("smoke-fsdp"), {TP: 2, ENGINES: 4})
TP4 = with_values(TP2, {TP: 4, ENGINES: 2})


def test_tp_2_to_4_in_five_lines():
    comparison = compared(TP2, TP4, NO_SMOKE, a="1" * 64, b="2" * 64)
    launch = " -> ".join(str(each.launch)[:8] for each in (comparison.a, comparison.b))
    assert [line.text for line in consequence_lines(comparison)] == [
        "engines   4 engines of 2 GPUs (TP 2, PP 1, DP 1, EP 1) -> 2 engines of 4 GPUs (TP 4, PP 1, DP 1, EP 1)",
        "GPUs      as before: 8 on 1 x 8 H100: policy 8, reference 0, engines 8 on the same GPUs",
        "identity  changed by generator.inference_engine_tensor_parallel_size, generator.num_inference_engines: "
        "2026.09.21 cannot mean both, publish a new version; recipe 11111111 -> 22222222, launch " + launch,
        (
            "resume    refused under 2026.09.21: ART-17 and the coordinator refuse A's checkpoints for another recipe; "
            "a new version starts at step 0"
        ),
        "smoke     a smoke of A does not count for B: engine TP is 4 here, 2 in the smoke run",
    ]


def test_the_same_document_twice():
    comparison = compared(TP2, TP2)
    assert comparison.equal
    assert [line.text for line in text_lines(comparison)][-1] == "equal: the same launch document"
    assert list(markdown_lines(comparison))[-1] == "Equal: the same launch document."
    assert {each.verdict for each in comparison.consequences} == {"same", "safe", "valid"}


@given(
    tp=st.sampled_from([1, 2, 4]),
    engines=st.integers(1, 4),
    batch=st.sampled_from([16, 32]),
    nodes=st.integers(1, 3),
    reference=st.booleans(),
)
def test_sizes_are_those_of_the_geometry(tp, engines, batch, nodes, reference):
    values = {
        TP: tp,
        ENGINES: engines,
        "skyrl.trainer.train_batch_size": batch,
        "iris.allocation.num_nodes": nodes,
        "skyrl.trainer.placement.policy_num_nodes": nodes,
        "skyrl.trainer.algorithm.use_kl_loss": reference,
    }
    after = with_values(TP2, values)
    comparison = compared(TP2, after)
    geometry = Geometry(side(after).subject)
    content = {each.aspect: each for each in comparison.consequences}
    assert content["engines"].after.startswith(f"{engines} engine")
    gpus, step = content["GPUs"].after, content["step"].after
    assert gpus["gpus"] == geometry.num_nodes * geometry.gpus_per_node
    assert gpus["policy_ranks"] == geometry.policy_world
    assert gpus["reference_ranks"] == (geometry.reference_world if geometry.reference_active else 0)
    assert gpus["engine_ranks"] == geometry.engines * geometry.engine_tp
    assert step["rows_per_step"] == geometry.train_batch * geometry.samples
    assert step["micro_steps"] == geometry.rows_per_rank // geometry.micro_batch


@pytest.mark.parametrize("name", ["smoke-fsdp", "moe-megatron"])
def test_every_size_of_the_contracts_examples_is_known(name):
    assert sizes_of(side(example(name)).subject).unknown == {}


@pytest.mark.parametrize(
    ("values", "recipes", "verdict", "words"),
    [
        (
            {"iris.priority": "interactive"},
            "11",
            "same",
            "the same recipe, only the placement moved; recipe 11111111",
        ),
        (
            {"iris.priority": "interactive"},
            "",
            "same",
            "the same recipe, as far as the documents alone tell; launch",
        ),
        ({"run.seed": 18}, "", "changed", "changed by run.seed: 2026.09.21 cannot mean both"),
        ({MODE: "none"}, "", "changed", "changed by trainer.resume_mode: 2026.09.21 cannot mean both"),
        ({COMMIT: "f" * 40}, "", "changed", "changed by runtime.launcher_commit"),
        ({}, "11", "same", "the same document; recipe 11111111"),
        ({}, "12", "changed", "changed by what the document does not show"),
        (
            {"iris.priority": "interactive"},
            "12",
            "changed",
            "changed by what the document does not show, such as the content of an input: 2026.09.21",
        ),
        (
            {
                "run.id": "users/lab/tests/qwen06-gsm8k-rl-2026.09.22",
                "artifacts.export_root": "s3://b/x/2026.09.22/exports",
            },
            "",
            "changed",
            "a version of its own, 2026.09.21 -> 2026.09.22",
        ),
        ({"run.id": "team/other-2026.09.21"}, "", "changed", "another run, team/other"),
        (
            {
                "run.seed": 1,
                "run.mode": "x",
                "run.export_hf": False,
                TP: 4,
                ENGINES: 1,
                GENERATOR + "backend": "x",
            },
            "",
            "changed",
            (
                "changed by generator.backend, generator.inference_engine_tensor_parallel_size, "
                "generator.num_inference_engines and 3 more: "
            ),
        ),
    ],
)
def test_identity(values, recipes, verdict, words):
    digests = dict(zip("ab", (digit * 64 for digit in recipes), strict=False)) if recipes else {}
    found = sentence(compared(TP2, with_values(TP2, values), **digests), "identity")
    assert found[0] == verdict and words in found[1]


def test_a_mutable_version_may_change():
    dev = with_values(
        TP2, {"run.id": "team/x-dev", "artifacts.export_root": "s3://b/team/x/dev/exports", ROOT: "s3://b/c"}
    )
    comparison = compared(dev, with_values(dev, {"run.seed": 18}))
    assert "dev is no fixed version and may change" in sentence(comparison, "identity")[1]
    assert sentence(comparison, "resume") == (
        "refused",
        "refused under dev: the coordinator refuses A's checkpoints for another recipe; a new version starts at step 0",
    )


@pytest.mark.parametrize(
    ("values", "verdict", "words"),
    [
        (
            {"iris.priority": "interactive"},
            "safe",
            "safe: B goes on from A's checkpoints, the recipe is the same",
        ),
        (
            {MODE: "none"},
            "refused",
            (
                "refused under 2026.09.21: ART-17 and the coordinator refuse another recipe than A's; a new version starts at "
                "step 0"
            ),
        ),
        (
            {MODE: "none", COMMIT: "f" * 40},
            "fresh",
            "B starts at step 0 (resume_mode none) and reads no checkpoint",
        ),
        (
            {MODE: "none", **OTHER_VERSION},
            "fresh",
            "B starts at step 0 (resume_mode none) and reads no checkpoint",
        ),
        (
            # The time to live moves the checkpoint root, and with it goes the right to the version's place.
            {ROOT: "s3://elsewhere/checkpoints", "run.seed": 18},
            "refused",
            (
                "refused under 2026.09.21: ART-17 and the coordinator refuse another recipe than A's; a new version starts at "
                "step 0"
            ),
        ),
        (
            {"run.id": "team/other-2026.09.21"},
            "not_known",
            (
                "B is another run with A's checkpoint root, and nothing keeps it from A's checkpoints; whether they fit is not "
                "known"
            ),
        ),
        (
            {ROOT: "s3://elsewhere/checkpoints"},
            "fresh",
            "B has a checkpoint root of its own and starts at step 0; it never sees A's checkpoints",
        ),
        ({ROOT: None}, "not_known", "not known: needs artifacts.checkpoint_root of both"),
        (
            {MODE: "from_path", "skyrl.trainer.resume_path": "s3://b/c/global_step_4"},
            "refused",
            (
                "refused under 2026.09.21: ART-17 and the coordinator refuse another recipe than A's; a new version reads "
                "s3://b/c/global_step_4"
            ),
        ),
        (
            {MODE: "from_path", **OTHER_VERSION},
            "not_known",
            "B reads no path that its resume_path names, as it says (resume_mode from_path); whether that fits is not known",
        ),
        (
            {MODE: "from_path", "skyrl.trainer.resume_path": "s3://b/c/global_step_4", **OTHER_VERSION},
            "not_known",
            "B reads s3://b/c/global_step_4, as it says (resume_mode from_path); whether that fits is not known",
        ),
        (
            {COMMIT: "f" * 40},
            "refused",
            (
                "refused under 2026.09.21: checkpoints are of runtime 81ae0ef7, B runs ffffffff (ART-06), unless the ledger "
                "says `checkpoints: compatible`; a new version starts at step 0"
            ),
        ),
        (
            {"iris.allocation.num_nodes": 2, "skyrl.trainer.placement.policy_num_nodes": 2},
            "refused",
            (
                "refused under 2026.09.21: ART-17 and the coordinator refuse A's checkpoints for another recipe; a new "
                "version starts at step 0, and whether the trainer could load A's other split is not known"
            ),
        ),
    ],
)
def test_resume(values, verdict, words):
    assert sentence(compared(TP2, with_values(TP2, values)), "resume") == (verdict, words)


def test_a_repin_that_the_ledger_allows_is_resumed():
    before = side(TP2, recipe="1" * 64)
    after = side(with_values(TP2, {COMMIT: "f" * 40}), recipe="2" * 64, compatible=("1" * 64,))
    assert (
        "the version ledger lets 2026.09.21 mean both; recipe 11111111 -> 22222222"
        in (sentence(compare(before, after, NO_SMOKE), "identity")[1])
    )
    assert sentence(compare(before, after, NO_SMOKE), "resume") == (
        "safe",
        "safe: another recipe, but the version ledger lets B go on from A's checkpoints",
    )


def test_smoke():
    assert sentence(compared(TP2, TP4), "smoke") == (
        "valid",
        "a verified smoke of A counts for B: the shape is the same",
    )
    unknown = SmokeComparison(differences=(), unknown="needs both graphs")
    assert sentence(compared(TP2, TP4, unknown), "smoke") == (
        "not_known",
        "not known whether a smoke of A counts for B: needs both graphs",
    )
    many = SmokeComparison(differences=tuple("abcde"), unknown="")
    assert sentence(compared(TP2, TP4, many), "smoke")[1].endswith("for B: a; b; c; and 2 more")


def test_what_cannot_be_read_silences_nothing_else():
    comparison = compared(TP2, with_values(TP2, {TP: "two"}))
    assert sentence(comparison, "engines") == (
        "not_known",
        f"not known: needs B's {TP} as int, it is 'two'",
    )
    assert sentence(comparison, "step")[0] == "same"


@pytest.mark.parametrize(("nodes", "told"), [(1, False), (2, True)])
def test_unknown_gpu_hours_are_told_where_they_changed(nodes, told):
    after = with_values(TP4, {"iris.allocation.num_nodes": nodes})
    a, b = (side(each, gpu_hours=None, gpu_hours_needs="graph") for each in (TP2, after))
    comparison = compare(a, b, NO_SMOKE)
    assert sentence(comparison, "GPU-hours") == ("not_known", "not known: needs A's graph")
    assert any("GPU-hours" in line.text for line in consequence_lines(comparison)) == told


@pytest.mark.parametrize(("timeout", "told"), [(0, False), (3600, True)])
def test_retries_matter_to_gpu_hours_where_each_attempt_has_a_timeout(timeout, told):
    before, after = (
        with_values(TP2, {"iris.timeout": timeout, "iris.max_retries": retries}) for retries in (0, 2)
    )
    a, b = (side(each, gpu_hours=None, gpu_hours_needs="graph") for each in (before, after))
    assert any("GPU-hours" in line.text for line in consequence_lines(compare(a, b, NO_SMOKE))) == told


def test_every_form_says_the_same():
    comparison = compared(TP2, TP4, NO_SMOKE)
    content = json.loads(json.dumps(comparison_json(comparison)))
    text = "\n".join(line.text for line in text_lines(comparison))
    markdown = "\n".join(markdown_lines(comparison)).replace("\\", "")
    assert content["equal"] is False and content["recipe_changed"] is True
    assert [(each["path"], each["before"], each["after"], each["recipe"]) for each in content["fields"]] == [
        (TP, 2, 4, True),
        (ENGINES, 4, 2, True),
    ]
    for aspect in ("engines", "GPUs", "identity", "resume", "smoke"):
        said = content["consequences"][aspect]["sentence"]
        assert said in text and said in markdown
    assert f"  ~* {TP}: 2 -> 4" in text
    assert f"| ~ | {TP} | 2 -> 4 | yes |" in markdown


def versioned(document, version):
    """The document as another version of its run."""
    before = document["artifacts"]["export_root"].split("/")[-2]
    text = json.dumps(document)
    assert text.count(before) > 5
    return json.loads(text.replace(before, version))


def test_what_decides_is_told_first_and_what_only_says_the_version_once():
    after = with_values(
        versioned(TP2, "2026.12.01.3"), {"run.seed": 18, "iris.priority": "production", TP: 4, ENGINES: 2}
    )
    before = versioned(TP2, "2026.12.01.2")
    comparison = compared(before, after)
    *_, id_line, seed, tp, engines, placed, folded = [line.text for line in text_lines(comparison)]
    assert id_line.startswith("  ~* run.id: ") and seed == "  ~* run.seed: 17 -> 18"
    assert {tp[:5], engines[:5]} == {"  ~* "} and placed.startswith("  ~  iris.priority: ")
    fields = comparison_json(comparison)["fields"]
    number = len(fields) - 5
    assert folded == (
        f"  ~  {number} addresses and names: 2026.12.01.2 -> 2026.12.01.3 (--format=json has each)"
    )
    assert number > 5 and sum("2026.12.01.3" in str(each["after"]) for each in fields) == number + 1
    assert sum(line.startswith("| ~ ") for line in markdown_lines(comparison)) == 6


def test_another_name_is_told_once_too():
    before = versioned(TP2, "2026.12.01.2")
    name = before["run"]["id"].removesuffix("-2026.12.01.2")
    text = json.dumps(before).replace(name, "team/other").replace(name.replace("/", "-"), "team-other")
    comparison = compared(before, json.loads(text))
    *_, run_id, folded = [line.text for line in text_lines(comparison)]
    assert run_id.startswith("  ~* run.id: ")
    number = len(comparison.changes) - 1
    assert number > 5 and folded == (
        f"  ~  {number} addresses and names: {name}@2026.12.01.2 -> team/other@2026.12.01.2 (--format=json has each)"
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("artifacts.export_root", "s3://elsewhere/marin/x/2026.12.01.3/exports"),
        ("inputs.model.uri", "s3://models/x/2026.12.01.3/hf"),
        ("iris.job_name", "x-2026.12.01.31"),
    ],
)
def test_what_says_more_than_the_version_is_told_itself(path, value):
    before = with_values(
        versioned(TP2, "2026.12.01.2"),
        {"inputs.model.uri": "s3://models/x/2026.12.01.2/hf", "iris.job_name": "x-2026.12.01.21"},
    )
    after = with_values(versioned(before, "2026.12.01.3"), {path: value})
    assert any(f"{path}: " in line.text for line in text_lines(compared(before, after)))


def test_what_a_document_holds_cannot_leave_its_cell_or_line():
    comparison = compared(TP2, with_values(TP2, {"iris.wandb_entity": "a|b\n\x1b[31m<b>"}))
    row = next(line for line in markdown_lines(comparison) if "wandb" in line)
    assert row.count("|") - row.count("\\|") == 5 and "<b>" not in row.replace("\\<b\\>", "")
    assert not any("\x1b" in line.text or "\n" in line.text for line in text_lines(comparison))


def test_a_section_that_came_is_told_leaf_by_leaf():
    comparison = compared(TP2, with_values(TP2, {"skyrl.teachers": {"x": {"size": 1}, "names": []}}))
    lines = [line.text for line in text_lines(comparison)]
    assert "  +* skyrl.teachers.names: []" in lines and "  +* skyrl.teachers.x.size: 1" in lines


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
