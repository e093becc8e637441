"""The launcher's own code as one deterministic zip: what a coordinator and its children run.

The sources are taken from the running program, wherever it lives: a checkout, a Bazel runfiles tree
of links, or an archive made by this module.
"""

from collections.abc import Collection, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

from pydantic import BaseModel, ConfigDict

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.store.deterministic_zip import write_zip

# What a task starts with. A program that lacks them was linked without the rooms it ships.
REQUIRED_MODULES = ("tools/launcher/coordinator/main.py", "tools/launcher/rehearsal/__main__.py")

SHIPPED_ROOMS = ("coordinator", "documents", "graph", "iris", "rehearsal", "store")
"""The rooms that a job runs; docs/architecture.md. The others only judge and submit."""

MAX_BYTES = 2**20
"""On Kubernetes Iris hands a job's files on in a ConfigMap, which holds 1 MiB."""

_PACKAGE = "tools.launcher"
# Tests and their helpers, and the start script that rules_python lays beside the sources of a program.
_NOT_SHIPPED = ("_test.py", "_testlib.py", "_for_test.py", "conftest.py", "_stage2_bootstrap.py")


class CodeIncomplete(Exception):
    """The running program does not carry the code a job needs."""


class CodeArchive(BaseModel):
    """A zip of python sources and its SHA-256 (64 hex digits)."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    data: bytes
    sha256: str


def make_code_archive(required: Collection[str] = REQUIRED_MODULES) -> CodeArchive:
    """Return the archive of the running launcher's rooms that a job runs; tests are left out.

    Args:
        required: member names that must be in it.

    Raises:
        CodeIncomplete: one is not, or the archive is larger than MAX_BYTES.
    """
    return archive_of(files(_PACKAGE), required)


def archive_of(package: Traversable, required: Collection[str]) -> CodeArchive:
    """Like `make_code_archive`, for the folder or archive entry `package` of `tools.launcher`."""
    root = _PACKAGE.replace(".", "/")
    members = {
        f"{root}/{room.name}/{name}": data
        for room in package.iterdir()
        if room.name in SHIPPED_ROOMS and room.is_dir()
        for name, data in _sources(room, "")
    }
    if (package / "__init__.py").is_file():
        members[f"{root}/__init__.py"] = (package / "__init__.py").read_bytes()
    missing = sorted(set(required) - members.keys())
    if missing:
        raise CodeIncomplete(
            f"this program does not carry {', '.join(missing)}, which the job would run. "
            "Add their targets to the program's deps, or run it from a complete checkout"
        )
    # A zip importer sees a folder only through a file in it, so every package gets its __init__,
    # also where the build system leaves empty ones out.
    for name in list(members):
        parts = name.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            members.setdefault("/".join([*parts[:depth], "__init__.py"]), b"")
    data = write_zip(members)
    if len(data) > MAX_BYTES:
        raise CodeIncomplete(
            f"the launcher's code for a job has {len(data)} bytes, and a cluster hands on at most "
            f"{MAX_BYTES}. Run the launcher from a checkout without other large files below tools/launcher"
        )
    return CodeArchive(data=data, sha256=sha256_hex(data))


def _sources(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            if entry.name.isidentifier() and entry.name != "__pycache__":
                yield from _sources(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".py") and not entry.name.endswith(_NOT_SHIPPED):
            yield f"{prefix}{entry.name}", entry.read_bytes()
