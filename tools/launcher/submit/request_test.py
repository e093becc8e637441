import sys

import pytest
from pydantic import SecretStr, ValidationError

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.iris.route import Route
from tools.launcher.submit.code_archive import CodeArchive
from tools.launcher.submit.remote_setup import setup_script
from tools.launcher.submit.request import (
    LaunchFacts,
    LaunchMismatch,
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


REMOTE = LaunchFacts(
    experiment_name="gsm8k_grpo",
    stage="rl",
    default_stage="rl",
    ordinal=1,
    cluster="cw-us-east-02a",
    store_url="gs://team/slipway",
    object_root_url=None,
    coordinator_timeout_hours=24,
    max_retries=3,
    priority="batch",
    credentials=("WANDB_API_KEY", "HF_TOKEN"),
    runtime="marinskyrl",
    route=Route(scheduler="iris", config="marin.yaml", target_cluster="cw-us-east-02a"),
    store_variables={"STORAGE_EMULATOR_HOST": "http://127.0.0.1:1"},
    requirements=b"pydantic==2",
)
SECRETS = {name: SecretStr(f"value of {name}") for name in REMOTE.credentials}


def request(facts=FACTS, secrets=None):
    return coordinator_request(
        facts, launch_digest=DIGEST, bundle_digest=BUNDLE, code=CODE, secrets=secrets or {}
    )


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
        "--runtime=rehearsal",
        "--deadline-seconds=10500",
    )
    # Iris rewrites an argument that starts with a container path.
    assert not any(word.startswith("/") for word in argv)
    assert argument_of(argv, "launch") == DIGEST
    assert argument_of(argv, "lau") is None


def test_a_request_for_a_real_cluster():
    made = request(REMOTE, SECRETS)
    assert made.argv[4:] == (
        "--store=gs://team/slipway",
        f"--bundle={BUNDLE}",
        f"--launch={DIGEST}",
        "--experiment=gsm8k_grpo",
        "--ordinal=1",
        "--stage=rl",
        "--runtime=marinskyrl",
        "--deadline-seconds=86100",
        "--credential=HF_TOKEN",
        "--credential=WANDB_API_KEY",
    )
    assert (made.priority, made.target_cluster, made.timeout_seconds) == ("batch", "cw-us-east-02a", 86400)
    assert (made.max_task_retries, made.children_survive) == (3, True)
    assert made.env == {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:1"}
    assert made.setup_scripts == (setup_script(),)
    assert made.files == {"slipway.zip": b"zip", "coordinator-requirements.txt": b"pydantic==2"}


def test_a_secret_is_nowhere_but_among_the_secrets():
    made = request(REMOTE, SECRETS)
    assert made.secrets == SECRETS
    shown = made.model_dump(mode="json", exclude={"files"})
    for text in (repr(made), str(shown), made.model_dump_json(exclude={"files"})):
        assert "value of" not in text


@pytest.mark.parametrize("names", [("HF_TOKEN",), ("HF_TOKEN", "WANDB_API_KEY", "OTHER")])
def test_other_secrets_than_the_declared_ones_are_refused(names):
    secrets = {name: SecretStr("hidden") for name in names}
    with pytest.raises(LaunchMismatch) as raised:
        request(REMOTE, secrets)
    differing = "WANDB_API_KEY" if len(names) == 1 else "OTHER"
    assert str(raised.value) == (
        f"the credentials handed over and the declared ones differ: {differing}. Declare in the execution's "
        "`credentials` what the run needs, and set those variables"
    )


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
