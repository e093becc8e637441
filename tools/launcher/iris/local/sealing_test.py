"""Tests of how secrets are sealed in the controller's database, with the table of the real Iris."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tools.launcher.iris.local.sealing import SEALED, IrisHasChanged, opened, replace_function, sealed

ENVIRONMENT = json.dumps({"env_vars": {"A": "b"}, "secrets": {"HF_TOKEN": "plain-ü"}})

FIRST, SECOND = b"A" * 43 + b"=", b"B" * 42 + b"A="

# The table belongs to the process, so what changes it gets one of its own.
STORE_AND_READ = """
import json
from iris.cluster.controller.schema import job_config_table as table
from sqlalchemy import String, create_engine, insert, select

def read():
    with create_engine("sqlite:///" + FILE).begin() as connection:
        return json.loads(connection.execute(select(table.c.environment_json)).scalar_one())["secrets"]

seal_stored_secrets(FIRST)
with create_engine("sqlite:///" + FILE).begin() as connection:
    table.create(connection)
    environment = json.dumps({"secrets": {"HF_TOKEN": "plain-value"}})
    connection.execute(insert(table).values(job_id="/a/b", name="b", environment_json=environment))
print(json.dumps(read()))
table.c.environment_json.type = String()
seal_stored_secrets(SECOND)
print(json.dumps(read()))
"""

MOVED = """
from pathlib import Path
from iris.cluster import secrets
from iris.cluster.controller import schema
from sqlalchemy import LargeBinary

def refused(call, argument):
    try:
        call(argument)
    except IrisHasChanged as error:
        print(error)

schema.job_config_table.c.environment_json.type = LargeBinary()
refused(seal_stored_secrets, FIRST)
del schema.job_config_table
refused(seal_stored_secrets, FIRST)
del secrets.WORKER_SECRETS_ROOT
secrets.worker_secret_root = lambda cache_dir: Path("/dev/shm/theirs/any")
refused(deliver_secrets_below, Path("/dev/shm/ours"))
"""


def in_a_process_of_its_own(code: str, file: str = "") -> list[str]:
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; FILE, FIRST, SECOND = {file!r}, {FIRST!r}, {SECOND!r}\n"
        f"from tools.launcher.iris.local.sealing import *\n{code}"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def seal(value: bytes) -> bytes:
    return value.hex().encode()


def unseal(token: bytes) -> bytes:
    return bytes.fromhex(token.decode())


def test_only_the_values_of_secrets_are_sealed() -> None:
    stored = sealed(ENVIRONMENT, seal)
    assert json.loads(stored) == {
        "env_vars": {"A": "b"},
        "secrets": {"HF_TOKEN": SEALED + "plain-ü".encode().hex()},
    }
    read = opened(stored, unseal)
    assert json.loads(read) == json.loads(ENVIRONMENT)


@pytest.mark.parametrize("environment", ["{}", '{"env_vars": {"A": "b"}}', '{"secrets": {}}'])
def test_an_environment_without_secrets_stays_as_it_is(environment: str) -> None:
    assert sealed(environment, seal) == environment
    assert opened(environment, unseal) == environment


def test_a_value_of_another_key_becomes_empty_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    stored = sealed(ENVIRONMENT, seal)
    assert json.loads(opened(stored, lambda _: None))["secrets"] == {"HF_TOKEN": ""}
    assert caplog.messages == ["the value of HF_TOKEN was sealed with a key that is gone; its job gets none"]


def test_what_was_stored_before_this_process_sealed_is_read_as_it_is() -> None:
    mixed = json.dumps({"secrets": {"A": "old", "B": SEALED + b"abc".hex()}})
    assert json.loads(opened(mixed, unseal))["secrets"] == {"A": "old", "B": "abc"}


def test_the_column_of_iris_is_sealed_on_disk_and_open_to_iris(tmp_path: Path) -> None:
    file = tmp_path / "controller.sqlite3"
    with_the_key, with_another = in_a_process_of_its_own(STORE_AND_READ, str(file))
    assert json.loads(with_the_key) == {"HF_TOKEN": "plain-value"}
    assert json.loads(with_another) == {"HF_TOKEN": ""}
    assert b"plain-value" not in file.read_bytes()
    assert SEALED.encode() in file.read_bytes()


def test_an_iris_that_is_built_otherwise_is_refused() -> None:
    module = ModuleType("iris.somewhere")
    with pytest.raises(IrisHasChanged) as caught:
        replace_function(module, "gone", lambda: None)
    assert str(caught.value) == (
        "this marin-iris has no iris.somewhere.gone, which the embedded cluster changes so that it runs on one "
        "machine and writes no credential to a disk. Pin the release it was made for, or change "
        "tools/launcher/iris/local to fit this one"
    )
    assert not hasattr(module, "gone")


def test_what_has_moved_in_iris_is_named() -> None:
    said = in_a_process_of_its_own(MOVED)
    assert [sentence.split(", which")[0] for sentence in said] == [
        "this marin-iris has no text column job_config.environment_json",
        "this marin-iris has no text column job_config.environment_json",
        "this marin-iris has no iris.cluster.secrets.WORKER_SECRETS_ROOT",
    ]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
