import sys

import pytest
from pydantic import ValidationError

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.submit.code_archive import CodeArchive
from tools.launcher.submit.request import (
    LaunchFacts,
    argument_of,
    coordinator_job_name,
    coordinator_request,
    run_key,
)

DIGEST, BUNDLE = "0123456789abcdef" * 4, "b" * 64
CODE = CodeArchive(data=b"zip", sha256=sha256_hex(b"zip"))
FACTS = LaunchFacts(
    experiment_name="cat_count",
    stage="rl",
    default_stage="rl",
    ordinal=1,
    cluster="local",
    store_url="file:///tmp/s",
    object_root_url="file:///tmp/o",
    coordinator_timeout_hours=3,
)


def request(facts=FACTS):
    return coordinator_request(facts, launch_digest=DIGEST, bundle_digest=BUNDLE, code=CODE)


def test_the_request_is_a_pure_function_of_the_launch():
    assert request() == request()


def test_the_request_has_the_size_of_a_coordinator():
    made = request()
    assert (made.cpu, made.memory, made.disk) == (4.0, "16GB", "64GB")
    assert (made.replicas, made.gpus_per_task, made.gpu_variant, made.coscheduled) == (1, 0, None, False)
    assert made.timeout_seconds == 3 * 3600
    assert made.files == {"slipway.zip": b"zip"}
    assert made.env == {}
    assert (made.user, made.name) == ("slipway", "cat_count-01234567-1")


def test_the_arguments_say_what_to_run():
    argv = request().argv
    assert argv[:2] == ("python", "-c")
    assert argv[3:] == (
        "tools.launcher.coordinator.main",
        "--store=file:///tmp/s",
        "--object-root=file:///tmp/o",
        f"--bundle={BUNDLE}",
        f"--launch={DIGEST}",
        "--experiment=cat_count",
        "--ordinal=1",
        "--stage=rl",
    )
    # Iris rewrites an argument that starts with a container path.
    assert not any(word.startswith("/") for word in argv)
    assert argument_of(argv, "launch") == DIGEST
    assert argument_of(argv, "lau") is None


@pytest.mark.parametrize(
    ("changes", "name", "experiment"),
    [
        ({}, "cat_count-01234567-1", "cat_count"),
        ({"ordinal": 12}, "cat_count-01234567-12", "cat_count"),
        ({"stage": "evaluate"}, "cat_count-01234567-1-evaluate", "cat_count.evaluate"),
        ({"stage": "evaluate", "default_stage": "evaluate"}, "cat_count-01234567-1", "cat_count"),
        ({"experiment_name": "Cat_Count"}, "cat_count-01234567-1", "Cat_Count"),
    ],
)
def test_names_are_deterministic(changes, name, experiment):
    facts = FACTS.model_copy(update=changes)
    assert coordinator_job_name(facts, DIGEST) == name
    assert run_key(facts, DIGEST).experiment == experiment


@pytest.mark.parametrize(
    "change", [{"ordinal": 0}, {"coordinator_timeout_hours": 0}, {"coordinator_timeout_hours": True}]
)
def test_bad_facts_are_refused(change):
    with pytest.raises(ValidationError):
        LaunchFacts(**{**FACTS.model_dump(), **change})


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
