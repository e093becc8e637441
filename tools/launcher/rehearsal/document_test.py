import sys

import pytest

from tools.launcher.documents.yaml_writer import dump_yaml
from tools.launcher.rehearsal.document import DocumentProblem, notices, read_document
from tools.launcher.rehearsal.document_for_test import document, document_bytes


def test_the_fields_a_rehearsal_obeys():
    read = read_document(document_bytes(), source="launch.yaml")
    assert (read.run.seed, read.iris.allocation.num_nodes, read.iris.allocation.gpu_variant) == (
        17,
        2,
        "H100",
    )
    assert read.skyrl.trainer.policy_mini_batch_size == 8
    assert read.attempt_record_uri.endswith("/attempts/0123456789ab.json")
    assert notices(read) == ()


def test_what_a_sparse_recipe_leaves_out_has_the_trainers_defaults():
    sparse = document()
    trainer = sparse["skyrl"]["trainer"]
    for key in ("algorithm", "epochs", "max_steps", "ckpt_interval", "resume_mode"):
        del trainer[key]
    del sparse["skyrl"]["generator"], sparse["skyrl"]["environment"]
    read = read_document(dump_yaml(sparse), source="launch.yaml")
    assert read.skyrl.environment.env_class == "gsm8k"
    assert read.skyrl.generator.n_samples_per_prompt == 5
    assert read.skyrl.trainer.ckpt_interval == 5
    assert read.skyrl.trainer.max_steps is None
    assert read.skyrl.trainer.algorithm.use_kl_loss is True


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"skyrl__trainer__algorithm__advantage_estimator": "gae"},
            (
                "launch.yaml: skyrl.trainer.algorithm.advantage_estimator is 'gae'. "
                "A rehearsal can do grpo and rloo: rehearse with one of them"
            ),
        ),
        (
            {"skyrl__trainer__algorithm__policy_loss_type": "cispo"},
            "policy_loss_type is 'cispo'. A rehearsal can do regular and gspo: rehearse with one of them",
        ),
        (
            {"skyrl__trainer__policy_mini_batch_size": 5},
            (
                "train_batch_size is 16 and policy_mini_batch_size is 5: 16 % 5 = 1. "
                "Make the first a multiple of the second"
            ),
        ),
        (
            {"run__mode": "checkpoint_export"},
            "run.mode is 'checkpoint_export'. A rehearsal can do only 'train'",
        ),
        (
            {"inputs__train_data": []},
            "inputs.train_data is []. A rehearsal needs it otherwise: list should have",
        ),
        (
            {"skyrl__generator__n_samples_per_prompt": 1},
            "generator.n_samples_per_prompt is 1. A rehearsal needs",
        ),
        ({"skyrl__generator__sampling_params__temperature": 0.0}, "sampling_params.temperature is 0.0"),
        (
            {"skyrl__trainer__resume_mode": "from_path"},
            "trainer.resume_mode is 'from_path'. A rehearsal can do only 'none' or 'latest'",
        ),
        ({"skyrl__trainer__train_batch_size": True}, "skyrl.trainer.train_batch_size is True"),
        ({"iris__job_name": "a/b"}, "iris.job_name is 'a/b'"),
        ({"schema_version": 2}, "schema_version is 2"),
    ],
)
def test_what_cannot_be_rehearsed_is_said(changes, sentence):
    with pytest.raises(DocumentProblem) as caught:
        read_document(document_bytes(**changes), source="launch.yaml")
    assert sentence in str(caught.value)


def test_all_findings_come_at_once():
    broken = document(run__seed="x")
    del broken["artifacts"]["export_root"], broken["iris"]
    with pytest.raises(DocumentProblem) as caught:
        read_document(dump_yaml(broken), source="launch.yaml")
    assert str(caught.value).splitlines() == [
        "launch.yaml: run.seed is 'x'. A rehearsal needs it otherwise: input should be a valid integer",
        "launch.yaml: iris is missing. Add it",
        "launch.yaml: artifacts.export_root is missing. Add it",
    ]


def test_what_is_not_yaml_is_said():
    with pytest.raises(DocumentProblem, match=r"launch\.yaml"):
        read_document(b"{", source="launch.yaml")
    with pytest.raises(DocumentProblem, match="the document is"):
        read_document(b"- 1\n", source="launch.yaml")


def test_simplifications_are_said():
    read = read_document(
        document_bytes(
            skyrl__entrypoint="fully_async", skyrl__trainer__algorithm={"policy_loss_type": "gspo"}
        ),
        source="launch.yaml",
    )
    assert notices(read) == (
        "skyrl.entrypoint is 'fully_async'; the rehearsal generates and trains in turns",
        "policy_loss_type is 'gspo'; answers have one token here, so it equals 'regular'",
    )


def test_what_an_agentic_run_asks_for_is_said():
    agentic = document(skyrl__entrypoint="terminal_bench", skyrl__terminal_bench={"harbor": {"name": "x"}})
    agentic["ingress"] = {"mode": "controller", "host": "", "record_literal": False, "vllm_http_port": 8000}
    agentic["inputs"]["train_data"][0] |= {
        "kind": "tasktrove_parquet",
        "verifier_ref": "verify-tool@1.4.0",
        "selection": {"sources": ["swe"], "tags": [], "modes": [], "tag_match": "all", "limit": 9, "seed": 7},
    }
    read = read_document(dump_yaml(agentic), source="launch.yaml")
    assert read.inputs.train_data[0].selection.limit == 9
    assert [notice.partition(" ")[0] for notice in notices(read)] == [
        "skyrl.entrypoint",
        "skyrl.terminal_bench",
        "ingress.mode",
        "inputs",
    ]
    agentic["inputs"]["train_data"][0]["selection"]["limit"] = 0
    with pytest.raises(DocumentProblem, match=r"train_data\.0\.selection\.limit is 0\. A rehearsal needs"):
        read_document(dump_yaml(agentic), source="launch.yaml")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
