import sys

import pytest

from tools.launcher.catalog.cards import MissingFact, fact
from tools.launcher.catalog.load import (
    load_cluster_card,
    load_dataset_card,
    load_model_card,
    load_runtime_manifest,
)
from tools.launcher.documents.strict_yaml import DocumentError

MODEL = b"""
kind: model
name: lab-moe64
num_attention_heads: 32
num_key_value_heads: 4
num_hidden_layers: 24
num_experts: 64
vocab_size: 151936
max_position_embeddings: 40960
hidden_size: 2048
dtype: bfloat16
parameters: 3000000000
"""


def test_a_core_card_is_read():
    card = load_model_card(MODEL, source="m.yaml")
    assert fact(card, "num_experts", "model") == 64


def test_null_is_known_and_absence_is_not():
    dense = load_model_card(MODEL.replace(b"num_experts: 64", b"num_experts: null"), source="m.yaml")
    assert fact(dense, "num_experts", "model") is None
    unknown = load_model_card(MODEL.replace(b"num_experts: 64\n", b""), source="m.yaml")
    with pytest.raises(MissingFact, match="num_experts in the model card 'lab-moe64'"):
        fact(unknown, "num_experts", "model")
    with pytest.raises(MissingFact, match="a model card with num_experts"):
        fact(None, "num_experts", "model")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            (b"name: lab", b"nmae: x\nname: lab"),
            "m.yaml: nmae: there is no such field (did you mean name?). Correct the model card",
        ),
        ((b"heads: 32", b"heads: true"), "num_attention_heads: Input should be a valid integer"),
        ((b"heads: 32", b"heads: '32'"), "num_attention_heads: Input should be a valid integer"),
        ((b"heads: 32", b"heads: 0"), "num_attention_heads: Input should be greater than 0, got 0. Correct"),
        (
            (b"kind: model", b"kind: cluster"),
            "kind is 'cluster', expected 'model'. Give a model card, or write `kind: model` if this is one",
        ),
        ((b"kind: model\n", b""), "kind is None, expected 'model'"),
    ],
)
def test_a_bad_card_has_a_clear_sentence(change, sentence):
    with pytest.raises(DocumentError) as caught:
        load_model_card(MODEL.replace(*change), source="m.yaml")
    assert sentence in str(caught.value)


def test_all_problems_of_a_card_are_named_at_once():
    with pytest.raises(DocumentError, match=r"hidden_size: .*; num_experts: "):
        load_model_card(MODEL.replace(b"64", b"x").replace(b"2048", b"1.5"), source="m.yaml")


def test_the_other_cards_are_read():
    cluster = load_cluster_card(b"kind: cluster\nname: h100\ncpu_per_node: 128\nsm: '9.0'\n", source="c")
    assert cluster.cpu_per_node == 128 and cluster.sm == "9.0"
    with pytest.raises(DocumentError, match="default_highest_band: Input should be 'system', 'production'"):
        load_cluster_card(b"kind: cluster\nname: h100\ndefault_highest_band: urgent\n", source="c")
    with pytest.raises(DocumentError, match="cpu_per_node: Input should be a finite number, got inf"):
        load_cluster_card(b"kind: cluster\nname: h100\ncpu_per_node: .inf\n", source="c")
    for prefix in (b"''", b"../x", b"s3:/b", b"file:///x"):
        with pytest.raises(DocumentError, match="marin_prefix: String should match pattern"):
            load_cluster_card(b"kind: cluster\nname: h100\nmarin_prefix: " + prefix + b"\n", source="c")
    for store in (b"gs://bucket/team", b"file:///var/slipway"):
        assert load_cluster_card(b"kind: cluster\nname: c\nstore: " + store + b"\n", source="c").store
    for store in (b"''", b"s3://bucket/x", b"/var/slipway", b"gs://", b"gs:///x", b"file://host/x"):
        with pytest.raises(DocumentError, match="store: String should match pattern"):
            load_cluster_card(b"kind: cluster\nname: c\nstore: " + store + b"\n", source="c")
    assert load_dataset_card(b"kind: dataset\nname: tiny\nrows: 12\n", source="d").rows == 12
    with pytest.raises(DocumentError, match="commit: it is missing, and has no default"):
        load_runtime_manifest(b"kind: runtime_manifest\nname: x\n", source="r")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
