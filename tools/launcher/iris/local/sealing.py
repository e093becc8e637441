"""Credentials in the controller's database are sealed: the file alone gives none of them away.

Iris stores a job's environment, the values of its secrets among it, as one readable column (marin-iris
0.2.227, `job_config.environment_json`). On a cluster that is the operator's disk; on the embedded one it is
a file of the user's, with a log of changes and freed pages beside it. So this process gives the column a
type that seals every value on its way in and opens it on its way out. All of Iris, also what it does later
with a stored job, goes through that type.
"""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

SEALED = "slipway-sealed:"
"""What a sealed value begins with."""

_COLUMN = "job_config.environment_json"

logger = logging.getLogger(__name__)


class IrisHasChanged(RuntimeError):
    """The installed Iris is not built the way this process has to change it; nothing was started."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"this marin-iris has no {what}, which the embedded cluster changes so that it runs on one machine "
            "and writes no credential to a disk. Pin the release it was made for, or change "
            "tools/launcher/iris/local to fit this one"
        )


def replace_function(module: ModuleType, name: str, made: Callable[..., Any]) -> None:
    """Put a function in the place of one of Iris's, in this process only.

    Raises:
        IrisHasChanged: the module has no such function, so that replacing it would do nothing.
    """
    if not callable(getattr(module, name, None)):
        raise IrisHasChanged(f"{module.__name__}.{name}")
    setattr(module, name, made)


def sealed(environment_json: str, seal: Callable[[bytes], bytes]) -> str:
    """Return the stored form of an environment: the same JSON, with each secret's value sealed."""
    environment = json.loads(environment_json)
    values = environment.get("secrets")
    if not values:
        return environment_json
    environment["secrets"] = {
        name: SEALED + seal(value.encode()).decode() for name, value in sorted(values.items())
    }
    return json.dumps(environment)


def opened(environment_json: str, unseal: Callable[[bytes], bytes | None]) -> str:
    """Return the environment behind a stored form.

    A value that can't be opened becomes empty, never something else: its task finds the credential empty and
    says so, and the jobs beside it are not held up.

    Args:
        environment_json: what the database holds.
        unseal: the value behind what `seal` made; None if it was sealed with another key.
    """
    # Most of what is read has no secrets, and this is asked for every job of every look.
    if SEALED not in environment_json:
        return environment_json
    environment = json.loads(environment_json)
    plain = {}
    for name, value in environment.get("secrets", {}).items():
        found = unseal(value.removeprefix(SEALED).encode()) if value.startswith(SEALED) else value.encode()
        if found is None:
            logger.warning("the value of %s was sealed with a key that is gone; its job gets none", name)
        plain[name] = "" if found is None else found.decode()
    environment["secrets"] = plain
    return json.dumps(environment)


def seal_stored_secrets(key: bytes) -> None:
    """Seal in the database what this process stores from now on, and open what it reads.

    Args:
        key: 32 bytes in URL-safe base64.

    Raises:
        IrisHasChanged: the column is not there.
    """
    from cryptography.fernet import Fernet, InvalidToken
    from iris.cluster.controller import schema
    from sqlalchemy import String
    from sqlalchemy.types import TypeDecorator

    fernet = Fernet(key)

    def unseal(token: bytes) -> bytes | None:
        try:
            return fernet.decrypt(token)
        except InvalidToken:
            return None

    class SealedEnvironment(TypeDecorator[str]):
        """Text whose secrets are sealed in the database."""

        impl = String
        cache_ok = True

        def process_bind_param(self, value: str | None, dialect: Any) -> str | None:
            return None if value is None else sealed(value, fernet.encrypt)

        def process_result_value(self, value: Any | None, dialect: Any) -> str | None:
            return None if value is None else opened(value, unseal)

    table = getattr(schema, "job_config_table", None)
    column = table.columns.get("environment_json") if table is not None else None
    if column is None or type(column.type) is not String:
        raise IrisHasChanged(f"text column {_COLUMN}")
    column.type = SealedEnvironment()


def deliver_secrets_below(folder: Path) -> None:
    """Let the workers of this process write the credentials of their tasks below a folder of ours.

    Iris's own, /dev/shm/iris-secrets-<uid>, is memory as well, but what a killed daemon leaves there nobody
    removes: each start has other names.

    Raises:
        IrisHasChanged: the workers get their folder in another way.
    """
    from iris.cluster import secrets

    if getattr(secrets, "WORKER_SECRETS_ROOT", None) is not None:
        secrets.WORKER_SECRETS_ROOT = folder
    if secrets.worker_secret_root(Path("any")).parent != folder:
        raise IrisHasChanged("iris.cluster.secrets.WORKER_SECRETS_ROOT")
