"""The secrets that Iris delivered to this task, as read-only files named like them. Imports no Iris."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import SecretStr

DIRECTORY_VARIABLE = "RIGGING_SECRETS_DIR"
"""Names the folder of the files; set by Iris where there are any (marin-rigging 0.2.227, rigging/secrets.py)."""


class CredentialMissing(Exception):
    """Declared credentials were not delivered. The message has their names, never a value."""


def delivered(names: Iterable[str], environ: Mapping[str, str]) -> dict[str, SecretStr]:
    """Return the values of the named credentials, exactly as they were submitted.

    Args:
        names: of the credentials that were submitted with this job.
        environ: the task's environment.

    Raises:
        CredentialMissing: one was not delivered, is empty, or is no UTF-8 text.
    """
    wanted = tuple(names)
    folder = environ.get(DIRECTORY_VARIABLE)
    values = {name: "" if folder is None else _value(Path(folder) / name) for name in wanted}
    missing = [name for name, value in values.items() if not value.strip()]
    if missing:
        raise CredentialMissing(
            f"{', '.join(missing)}: declared as credential of this run, and not among what Iris delivered to this "
            "task, or empty there. The local Iris has forgotten credentials after a restart of the machine or "
            "`launcher local stop`. Set the variable where you launch, and launch as a new ordinal"
        )
    return {name: SecretStr(value) for name, value in values.items()}


def _value(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # The latter's text holds bytes of the value.
        return ""
