"""The project's own runtime manifests."""

from pathlib import Path

from tools.launcher.catalog.load import load_parsed_runtime_manifest, load_runtime_manifest
from tools.launcher.catalog.runtime_manifest import RuntimeManifest

FOLDER = "third_party/marinskyrl"

_SHIPPED = Path(__file__).parents[3] / FOLDER
"""The same place in a checkout and in the runfiles of a program."""

_PARSED = Path(__file__).parent / "parsed_manifests"
"""Where a built program has the same as JSON; a checkout has none."""

_COMMIT_IN_NAME = 8


def file_name(commit: str) -> str:
    """Return what the manifest of a commit is called: the first digits of the commit."""
    return f"{commit[:_COMMIT_IN_NAME]}.yaml"


def shipped_files() -> tuple[Path, ...]:
    """Return the files of all manifests, by name."""
    return tuple(sorted(_SHIPPED.glob("*.yaml")))


def load_shipped(file: Path) -> RuntimeManifest:
    """Read one of them. Raises DocumentError."""
    if file.parent == _SHIPPED and (parsed := _PARSED / f"{file.stem}.json").exists():
        return load_parsed_runtime_manifest(parsed.read_bytes(), source=file.name)
    return load_runtime_manifest(file.read_bytes(), source=file.name)


def age(manifest: RuntimeManifest) -> tuple[int, ...]:
    """Return its release of marin-core as numbers: of two manifests, the larger is the newer."""
    return tuple(int(part) for part in manifest.marin_core.split(".") if part.isdecimal())
