import sys

import pytest

from tools.launcher.coordinator.attempt import AttemptProblem, is_same_run, make_attempt, with_fields_of
from tools.launcher.coordinator.bundle_for_test import pinned_document
from tools.launcher.documents.canonical import digest_of, sha256_hex
from tools.launcher.documents.strict_yaml import load_yaml
from tools.launcher.documents.yaml_writer import dump_yaml
from tools.launcher.store.records import RunKey


def _key(document, ordinal=1):
    return RunKey(experiment="cat_count", launch_digest=digest_of(document), ordinal=ordinal)


def test_exactly_two_fields_differ_from_the_pinned_document():
    pinned = pinned_document()
    attempt = make_attempt(dump_yaml(pinned), _key(pinned))
    written = load_yaml(attempt.document, source="attempt")
    assert written["run"]["attempt_id"] == attempt.attempt_id
    assert written["iris"]["job_name"] == attempt.job_name
    assert written != pinned
    assert list(_differences(pinned, written)) == ["run.attempt_id", "iris.job_name"]
    assert with_fields_of(written, pinned) == pinned
    assert attempt.digest == digest_of(written) != digest_of(pinned)


def _differences(one, two, place=""):
    if isinstance(one, dict) and isinstance(two, dict):
        assert one.keys() == two.keys()
        for key in one:
            yield from _differences(one[key], two[key], f"{place}.{key}".strip("."))
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for index, (left, right) in enumerate(zip(one, two, strict=True)):
            yield from _differences(left, right, f"{place}[{index}]")
    elif one != two or type(one) is not type(two):
        yield place


def test_ids_follow_from_launch_digest_and_ordinal():
    pinned = pinned_document()
    first = make_attempt(dump_yaml(pinned), _key(pinned))
    assert first == make_attempt(dump_yaml(pinned), _key(pinned))
    assert first.attempt_id == sha256_hex(f"{digest_of(pinned)}:1".encode())[:12]
    assert first.job_name == f"lab-cat-count-2026.11.30-{first.attempt_id}"
    second = make_attempt(dump_yaml(pinned), _key(pinned, ordinal=2))
    assert second.attempt_id != first.attempt_id


def test_another_attempt_of_the_same_run_is_recognised():
    pinned = pinned_document()
    first = make_attempt(dump_yaml(pinned), _key(pinned))
    second = make_attempt(dump_yaml(pinned), _key(pinned, ordinal=2))
    assert is_same_run(first.document, second)
    changed = pinned_document(run__seed=3)
    other = make_attempt(dump_yaml(changed), _key(changed))
    assert not is_same_run(other.document, second)
    for unreadable in (b"{", b"[]", b"run: 1\n", b"run: {}\n"):
        assert not is_same_run(unreadable, second)


def test_the_examples_shape_with_shared_values_keeps_them():
    shared = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    pinned = pinned_document(runtime__task_env=shared, skyrl__extra_env=shared)
    written = load_yaml(make_attempt(dump_yaml(pinned), _key(pinned)).document, source="attempt")
    assert written["runtime"]["task_env"] == written["skyrl"]["extra_env"] == shared


def test_a_federated_run_is_routed_no_further_from_inside():
    route = {
        "iris__target_cluster": "cw-rno2a",
        "iris__parent_cluster_config": "lib/iris/config/marin.yaml",
    }
    pinned = pinned_document(**route)
    attempt = make_attempt(dump_yaml(pinned), _key(pinned))
    written = load_yaml(attempt.document, source="attempt")
    assert list(_differences(pinned, written)) == [
        "run.attempt_id",
        "iris.job_name",
        "iris.target_cluster",
        "iris.parent_cluster_config",
    ]
    assert (written["iris"]["target_cluster"], written["iris"]["parent_cluster_config"]) == (None, None)
    assert with_fields_of(written, pinned) == pinned
    assert is_same_run(attempt.document, make_attempt(dump_yaml(pinned), _key(pinned, ordinal=2)))
    # A document without the two fields gets none.
    for field in ("target_cluster", "parent_cluster_config"):
        del pinned["iris"][field]
    written = load_yaml(make_attempt(dump_yaml(pinned), _key(pinned)).document, source="attempt")
    assert "target_cluster" not in written["iris"]


def test_numbers_keep_their_type():
    pinned = pinned_document(
        iris__allocation__cpu=8.0, skyrl__trainer__policy={"optimizer_config": {"lr": 1e-06}}
    )
    written = load_yaml(make_attempt(dump_yaml(pinned), _key(pinned)).document, source="attempt")
    assert type(written["iris"]["allocation"]["cpu"]) is float
    assert written["skyrl"]["trainer"]["policy"]["optimizer_config"]["lr"] == 1e-06


def test_another_document_than_the_runs_is_refused():
    with pytest.raises(AttemptProblem, match=r"launch\.yaml has the digest [0-9a-f]{64}, the run is for"):
        make_attempt(dump_yaml(pinned_document()), _key(pinned_document(run__seed=3)))


@pytest.mark.parametrize(
    ("remove", "sentence"),
    [
        (
            ("run", "attempt_id"),
            "launch.yaml: run.attempt_id is None. It must be text: build the experiment again",
        ),
        (("iris",), "launch.yaml: iris.job_name is None"),
        (("artifacts", "attempts_root"), "launch.yaml: artifacts.attempts_root is None"),
    ],
)
def test_a_missing_field_is_named(remove, sentence):
    pinned = pinned_document()
    *parents, last = remove
    place = pinned
    for parent in parents:
        place = place[parent]
    del place[last]
    with pytest.raises(AttemptProblem) as caught:
        make_attempt(dump_yaml(pinned), _key(pinned))
    assert sentence in str(caught.value)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
