"""The two digests of a launch, and the file that carries them.

recipe: what is learned. It stays when a run moves to another cluster.
launch: the exact document to submit, placement included, over canonical JSON.
"""

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tools.launcher.documents.canonical import digest_of
from tools.launcher.graph.fingerprint import step_fingerprint
from tools.launcher.graph.step import ArtifactStep

_LINE = re.compile(r"recipe sha256:([0-9a-f]{64})\nlaunch sha256:([0-9a-f]{64})\n")


class LaunchDigests(BaseModel):
    """Both digests, 64 hex digits each."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    recipe: str = Field(pattern=r"^[0-9a-f]{64}$")
    launch: str = Field(pattern=r"^[0-9a-f]{64}$")


def digests_of(run: ArtifactStep, launch_document: dict[str, Any]) -> LaunchDigests:
    """Return the digests of an RL step and its pinned launch document."""
    return LaunchDigests(recipe=step_fingerprint(run), launch=digest_of(launch_document))


def digest_file(digests: LaunchDigests) -> bytes:
    """Return the content of `<name>.digest`."""
    return f"recipe sha256:{digests.recipe}\nlaunch sha256:{digests.launch}\n".encode()


def read_digest_file(data: bytes) -> LaunchDigests:
    """Read `<name>.digest`.

    Raises:
        ValueError: if the file has another form.
    """
    match = _LINE.fullmatch(data.decode("utf-8", "replace"))
    if match is None:
        raise ValueError("not a digest file: expected the lines `recipe sha256:…` and `launch sha256:…`")
    return LaunchDigests(recipe=match[1], launch=match[2])
