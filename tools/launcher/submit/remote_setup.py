"""The Python environment of a coordinator on a real cluster: ours, to the last byte.

A task of a real cluster starts with the image's programs (uv among them) and none of our libraries. The job
carries its own code (`code_archive`) and the part of the launcher's lock that the coordinator imports, with
every file's hash; the setup script installs exactly that into `$IRIS_VENV`, which Iris activates before the
command (marin-iris 0.2.227, iris/cluster/setup_scripts.py and iris/cluster/backends/k8s/tasks.py,
`_build_task_script`), so that `python` is its interpreter. The embedded cluster runs no setup script.
"""

import re
from typing import Final

REQUIREMENTS_FILE: Final = "coordinator-requirements.txt"

ROOTS: Final = ("google-cloud-storage", "marin-iris", "marin-rigging", "pydantic")
"""What the coordinator imports itself (with the store's and Iris's clients)."""

# The lock is of this Python: third_party/python/lock.sh.
PYTHON: Final = "3.12"

_NAME = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?==\S+ \\$")
_REQUIRED_BY = re.compile(r" +# +(via +)?(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(\[.*\])?$")


class LockUnreadable(Exception):
    """The launcher's lock does not have the form that `uv pip compile` gives it."""


def requirements(lock: str) -> bytes:
    """Return the part of the lock that ROOTS need, directly or not, with its hashes.

    Args:
        lock: third_party/python/requirements_lock.txt. Who needs a package is read from its `# via` comments.

    Raises:
        LockUnreadable: a root is not in it.
    """
    blocks = _blocks(lock)
    needed: set[str] = {name for name in ROOTS if name in blocks}
    if missing := sorted(set(ROOTS) - needed):
        raise LockUnreadable(
            f"requirements_lock.txt has no {', '.join(missing)}. Write it anew with third_party/python/lock.sh"
        )
    while more := {name for name, lines in blocks.items() if name not in needed and _users(lines) & needed}:
        needed |= more
    kept = [line for name in sorted(needed) for line in blocks[name] if not line.lstrip().startswith("#")]
    return ("\n".join(kept) + "\n").encode()


def setup_script() -> str:
    """Return the script that installs REQUIREMENTS_FILE, which lies among the job's files."""
    install = 'uv pip install --python "$IRIS_VENV/bin/python" --require-hashes --no-deps --only-binary :all:'
    return (
        "set -e\n"
        f'uv venv --allow-existing --python {PYTHON} "$IRIS_VENV"\n'
        f'{install} --requirement "$IRIS_WORKDIR/{REQUIREMENTS_FILE}"\n'
    )


def _blocks(lock: str) -> dict[str, list[str]]:
    """Return each package's lines, by its name."""
    blocks: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in lock.splitlines():
        match = _NAME.match(line)
        if match is not None:
            lines = blocks.setdefault(match["name"].lower(), [])
        if line.strip():
            lines.append(line)
    return blocks


def _users(lines: list[str]) -> set[str]:
    matches = (_REQUIRED_BY.match(line) for line in lines)
    return {match["name"].lower() for match in matches if match is not None}
