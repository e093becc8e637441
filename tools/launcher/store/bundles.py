"""The submission bundle: the reviewed files, as one object named by its digest."""

import io
import re
import struct
import zipfile

from pydantic import BaseModel, ConfigDict

from tools.launcher.documents.canonical import digest_of
from tools.launcher.documents.strict_yaml import DocumentError, load_yaml
from tools.launcher.store.deterministic_zip import write_zip
from tools.launcher.store.object_store import StoreError

# `put_content(store, BUNDLE_PREFIX, pack(bundle))` is how a bundle gets into a store.
BUNDLE_PREFIX = "bundles/sha256"

_MEMBERS = {
    "launch.yaml": "launch_yaml",
    "graph.json": "graph_json",
    "plan.json": "plan_json",
    "digest": "digest_text",
}

# A graph of a thousand steps is below 2 MB; this only bounds a hostile or foreign archive.
MAX_MEMBER_BYTES = 32 << 20

_DIGEST_LINE = re.compile(r"(recipe|launch) sha256:([0-9a-f]{64})")


class BundleError(StoreError):
    """A bundle cannot be used. The message names what is wrong and the fix."""


class LaunchBundle(BaseModel):
    """The four files of a built experiment that a launch needs, byte for byte."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    launch_yaml: bytes
    graph_json: bytes
    plan_json: bytes
    digest_text: str


class BundleDigests(BaseModel):
    """The two digests of a `<name>.digest` file, 64 hex digits each."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    recipe: str
    launch: str


def pack(bundle: LaunchBundle) -> bytes:
    """Return the bundle as a zip; equal bundles give equal bytes."""
    return write_zip(
        {
            "launch.yaml": bundle.launch_yaml,
            "graph.json": bundle.graph_json,
            "plan.json": bundle.plan_json,
            "digest": bundle.digest_text.encode(),
        }
    )


def unpack(data: bytes) -> LaunchBundle:
    """Return the bundle in the zip `data`.

    Raises:
        BundleError: not a zip, a name that does not belong (a path, `..`, a duplicate), a missing
            name, a compressed or over-long member, a wrong checksum, or a digest file that is not text.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = _read_members(archive)
    except (zipfile.BadZipFile, EOFError, OSError, RuntimeError, ValueError, struct.error) as error:
        raise BundleError(
            f"the bundle is not a readable zip: {error}. Launch again, which stores it anew"
        ) from None
    missing = sorted(_MEMBERS.keys() - members.keys())
    if missing:
        raise BundleError(f"the bundle lacks {', '.join(missing)}. Build the experiment and launch again")
    try:
        digest_text = members["digest"].decode("ascii")
    except UnicodeDecodeError:
        raise BundleError(
            "the bundle's digest file is not text. Build the experiment and launch again"
        ) from None
    return LaunchBundle(
        launch_yaml=members["launch.yaml"],
        graph_json=members["graph.json"],
        plan_json=members["plan.json"],
        digest_text=digest_text,
    )


def _read_members(archive: zipfile.ZipFile) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    for info in archive.infolist():
        name = info.filename
        if name not in _MEMBERS or name in members:
            raise BundleError(
                f"the bundle has the member {name!r}; exactly {', '.join(sorted(_MEMBERS))} belong in it. "
                "Build the experiment and launch again"
            )
        if info.compress_type != zipfile.ZIP_STORED or info.file_size > MAX_MEMBER_BYTES:
            raise BundleError(
                f"the bundle's {name} is compressed or larger than {MAX_MEMBER_BYTES} bytes. "
                "Build the experiment and launch again"
            )
        members[name] = archive.read(info)
    return members


def read_digests(digest_text: str) -> BundleDigests:
    """Return the digests of a `<name>.digest` file: a `recipe` line, then a `launch` line.

    Raises:
        BundleError: anything else.
    """
    lines = digest_text.splitlines()
    found = [match.groups() for line in lines if (match := _DIGEST_LINE.fullmatch(line))]
    if len(lines) != 2 or [name for name, _ in found] != ["recipe", "launch"]:
        raise BundleError(
            f"the digest file reads {digest_text[:80]!r}; expected the lines 'recipe sha256:<64 hex "
            "digits>' and "
            "'launch sha256:<64 hex digits>'. Build the experiment again"
        )
    return BundleDigests(recipe=found[0][1], launch=found[1][1])


def verify_bundle(bundle: LaunchBundle) -> BundleDigests:
    """Check that the launch document has the digest the bundle states, and return both digests.

    Raises:
        BundleError: it has another, or cannot be read.
    """
    digests = read_digests(bundle.digest_text)
    try:
        seen = digest_of(load_yaml(bundle.launch_yaml, source="launch.yaml"))
    except (DocumentError, ValueError) as error:
        raise BundleError(f"the bundle's launch document cannot be read: {error}") from None
    if seen != digests.launch:
        raise BundleError(
            f"the launch document has digest sha256:{seen}, the digest file says sha256:{digests.launch}. "
            "The reviewed and the submitted bytes differ: build the experiment and launch again"
        )
    return digests
