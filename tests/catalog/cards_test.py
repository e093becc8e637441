"""Every card of the repository loads, is named after its file, and repeats the facts of its sources."""

import hashlib
import re
import sys
from pathlib import Path

import pytest

from tools.launcher.catalog.cards import ClusterCard, DatasetCard, HfExport, ModelCard
from tools.launcher.catalog.load import load_cluster_card, load_dataset_card, load_model_card
from tools.launcher.graph.names import artifact_name_problem
from tools.launcher.graph.versions import is_mutable, version_problem

THIRD_PARTY = Path(__file__).parents[2] / "third_party"
LOADERS = {"models": load_model_card, "datasets": load_dataset_card, "clusters": load_cluster_card}
FILES = {kind: sorted((THIRD_PARTY / kind).glob("*.yaml")) for kind in LOADERS}
ALL = [pytest.param(kind, path, id=f"{kind}/{path.name}") for kind, paths in FILES.items() for path in paths]
GIB_PER_TIB = 1024
GEOMETRY = {
    "num_attention_heads",
    "num_key_value_heads",
    "num_hidden_layers",
    "num_experts",
    "num_experts_per_token",
    "num_shared_experts",
    "moe_intermediate_size",
    "hidden_size",
    "vocab_size",
    "max_position_embeddings",
    "sliding_window",
    "linear_key_heads",
    "linear_value_heads",
}
"""What `geometry` covers in `sources` of a model card."""


def _load(kind, path):
    return LOADERS[kind](path.read_bytes(), source=path.name)


def _model(stem) -> ModelCard:
    return _load("models", THIRD_PARTY / "models" / f"{stem}.yaml")


def _dataset(stem) -> DatasetCard:
    return _load("datasets", THIRD_PARTY / "datasets" / f"{stem}.yaml")


def _cluster(stem) -> ClusterCard:
    return _load("clusters", THIRD_PARTY / "clusters" / f"{stem}.yaml")


def test_the_cards_are_found():
    assert {kind: len(paths) for kind, paths in FILES.items()} == {"models": 7, "datasets": 3, "clusters": 5}


@pytest.mark.parametrize(("kind", "path"), ALL)
def test_a_card_is_called_after_its_file(kind, path):
    assert re.sub(r"[^a-z0-9]", "_", _load(kind, path).name) == path.stem


@pytest.mark.parametrize(("kind", "path"), ALL)
def test_a_card_names_its_sources(kind, path):
    sources = _load(kind, path).sources
    assert sources and all(re.match(r"[a-z_ ,]+: \S", source) for source in sources), sources


@pytest.mark.parametrize(("kind", "path"), ALL)
def test_sources_cover_every_stated_fact(kind, path):
    card = _load(kind, path)
    if any(source.startswith("all") for source in card.sources):
        return
    covered = {fact.strip() for source in card.sources for fact in source.partition(":")[0].split(",")}
    if "geometry" in covered:
        covered |= GEOMETRY
    assert card.model_fields_set - covered <= {"kind", "name", "sources", "repository"}


@pytest.mark.parametrize("kind", LOADERS)
def test_every_card_has_a_target_of_its_name(kind):
    build = (THIRD_PARTY / kind / "BUILD.bazel").read_text("utf-8")
    targets = re.findall(rf'{kind[:-1]}_card\(\s*name = "(\w+)",\s*src = "(\w+)\.yaml",', build)
    assert sorted(targets) == [(path.stem, path.stem) for path in FILES[kind]]


@pytest.mark.parametrize("path", FILES["models"], ids=lambda path: path.stem)
def test_a_model_is_pinned_and_possible(path):
    card = _load("models", path)
    if card.repository is None:
        assert card.revision is None
    else:
        assert re.fullmatch(r"[0-9a-f]{40}", card.revision or "")
        assert card.repository.rpartition("/")[2].lower() == card.name
    assert card.num_attention_heads % card.num_key_value_heads == 0
    assert "num_experts" in card.model_fields_set
    if card.num_experts is None:
        assert not card.model_fields_set & {
            "num_experts_per_token",
            "num_shared_experts",
            "moe_intermediate_size",
        }
    else:
        assert card.num_experts_per_token < card.num_experts


def _choices(count, fits):
    return [n for n in range(1, count + 1) if count % n == 0 and fits(n)]


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("qwen2_5_0_5b_instruct", [1, 2, 7, 14]),
        ("qwen3_0_6b", [1, 2, 4, 8, 16]),
        ("qwen3_30b_a3b", [1, 2, 4, 8, 16, 32]),
        ("grug_67b_a2b", [1, 2, 4, 5, 10, 20]),
    ],
)
def test_tensor_parallel_sizes_by_the_head_rule(stem, expected):
    assert _choices(_model(stem).num_attention_heads, lambda _: True) == expected


@pytest.mark.parametrize(
    ("stem", "expected"),
    [("grug_67b_a2b", [1, 5, 10, 20]), ("qwen3_next_80b_a3b_instruct", [1, 2, 4, 8, 16])],
)
def test_tensor_parallel_sizes_of_engines(stem, expected):
    card = _model(stem)
    kv = card.num_key_value_heads
    assert _choices(card.num_attention_heads, lambda tp: kv % tp == 0 or tp % kv == 0) == expected


def test_tensor_parallel_sizes_of_megatron_training():
    card = _model("qwen3_30b_a3b")
    assert _choices(card.num_attention_heads, lambda tp: card.num_key_value_heads % tp == 0) == [1, 2, 4]


def test_pipeline_sizes_of_grug():
    assert _choices(_model("grug_67b_a2b").num_hidden_layers, lambda _: True) == [1, 2, 13, 26]


@pytest.mark.parametrize(
    ("stem", "gigabytes"),
    [
        ("qwen3_8b", 131),
        ("qwen3_30b_a3b", 489),
        ("qwen3_coder_30b_a3b_instruct", 489),
        ("grug_67b_a2b", 1073),
    ],
)
def test_parameters_give_the_known_training_memory(stem, gigabytes):
    """16 bytes per parameter: weights, gradients and the state of Adam (clusters-and-models.md §2.2)."""
    assert round(_model(stem).parameters * 16 / 1e9) == gigabytes


def test_what_is_not_known_is_left_out():
    assert "parameters" not in _model("qwen2_5_0_5b_instruct").model_fields_set
    assert "parameters" not in _model("qwen3_next_80b_a3b_instruct").model_fields_set
    assert not {"max_position_embeddings", "revision"} & _model("grug_67b_a2b").model_fields_set
    assert "hbm_gb" not in _cluster("cw_us_east_08a").model_fields_set
    assert "validation_rows" not in _dataset("gsm8k").model_fields_set


@pytest.mark.parametrize(
    ("export", "identity", "place"),
    [
        (
            _model("qwen3_0_6b").export,
            "tests/qwen06-sft@2026.09.01:1512cff8",
            "s3://marin-us-east-02a/tests/qwen06-sft/hf/step-32",
        ),
        (_dataset("gsm8k").export, "tests/gsm8k@2026.09.01:425a569b", "s3://marin-us-east-02a/tests/gsm8k"),
    ],
)
def test_exports_are_those_of_the_contract(export: HfExport, identity, place):
    assert f"{export.name}@{export.version}:{export.fingerprint}" == identity
    assert "/".join(part for part in (export.uri, export.relative_path) if part) == place


@pytest.mark.parametrize(("kind", "path"), [param for param in ALL if param.values[0] != "clusters"])
def test_exports_are_immutable_artifacts(kind, path):
    export = _load(kind, path).export
    if export is not None:
        assert artifact_name_problem(export.name) is None
        assert version_problem(export.version) is None
        assert not is_mutable(export.version)


def test_the_fingerprint_of_the_toy_data_follows_from_its_card():
    card = _dataset("cat_count")
    text = (
        f"{card.export.name}@{card.export.version} {card.env_class} {card.train_path}={card.rows} "
        f"{card.validation_path}={card.validation_rows} max_prompt_tokens={card.max_prompt_tokens}"
    )
    assert text in (THIRD_PARTY / "datasets" / "cat_count.yaml").read_text("utf-8")
    assert hashlib.sha256(text.encode()).hexdigest()[:8] == card.export.fingerprint


@pytest.mark.parametrize(
    ("stem", "nodes", "gpus", "memory", "disk_tib", "sm", "budget", "prefix"),
    [
        ("cw_us_east_02a", 32, "8 x H100", 2014, 27.94, "9.0", 10688, "s3://marin-us-east-02a/marin"),
        ("cw_rno2a", 64, "8 x H100", 2014, 27.94, "9.0", 10688, "s3://marin-us-east-02a/marin"),
        ("cw_us_east_08a", 216, "4 x GB200", 955, 13.97, "10.0", 5680, "s3://marin-us-east-02a/marin"),
        ("cw_us_west_04a", 2, "8 x H100", 2014, 27.94, "9.0", 10688, "s3://marin-us-west-04a/marin"),
    ],
)
def test_clusters_repeat_the_contract(stem, nodes, gpus, memory, disk_tib, sm, budget, prefix):
    card = _cluster(stem)
    assert (card.max_nodes, f"{card.gpus_per_node} x {card.gpu_variant}") == (nodes, gpus)
    assert (card.memory_per_node_gb, card.disk_per_node_gb) == (memory, disk_tib * GIB_PER_TIB)
    assert (card.sm, card.default_user_budget, card.marin_prefix) == (sm, budget, prefix)
    assert card.config == f"lib/iris/config/{card.name}.yaml"
    assert card.name == f"cw-{card.region}"


@pytest.mark.parametrize("path", FILES["clusters"], ids=lambda path: path.stem)
def test_a_cluster_is_dated_and_routed(path):
    card = _load("clusters", path)
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", card.as_of)
    assert card.marin_prefix and card.temp_bucket
    assert not card.temp_bucket.endswith("/") and "/tmp" not in card.temp_bucket
    if card.scheduler == "embedded":
        assert card.hub is None and card.parents == ()
    else:
        assert card.hub in card.parents


def test_only_the_development_hub_reaches_the_test_cluster():
    assert _cluster("cw_us_west_04a").parents == ("lib/iris/config/marin-dev.yaml",)


def test_racks_of_the_gb200_cluster_are_whole():
    card = _cluster("cw_us_east_08a")
    assert (card.max_nodes / card.rack_nodes, card.schedulable_rack_nodes) == (12, 16)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
