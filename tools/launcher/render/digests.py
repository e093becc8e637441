"""The two digests of a launch, and the file that carries them.

recipe: what is learned. It stays when a run moves to another cluster.
launch: the exact document to submit, placement included, over canonical JSON.
"""

import re

from pydantic import BaseModel, ConfigDict, Field

_LINE = re.compile(r"recipe sha256:([0-9a-f]{64})\nlaunch sha256:([0-9a-f]{64})\n")


class LaunchDigests(BaseModel):
    """Both digests, 64 hex digits each."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    recipe: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Fingerprint of the RL step."""
    launch: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of the pinned launch document."""


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
