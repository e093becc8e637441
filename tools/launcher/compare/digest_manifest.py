"""The digests of many experiments as one file: a digest_manifest target builds it, `affected` reads it."""

import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.launcher.documents.strict_yaml import DocumentError

_FROZEN = ConfigDict(frozen=True, strict=True, extra="forbid")

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ExperimentDigests(BaseModel):
    """One experiment.

    Attributes:
        version: of its target.
        recipe: fingerprint of what is learned.
        launch: digest of the document, placement included.
        graph: digest of what the graph says beside the document (`beside_document`); None in a manifest of an
            older launcher.
    """

    model_config = _FROZEN

    version: str
    recipe: Digest
    launch: Digest
    graph: Digest | None = None


class DigestManifest(BaseModel):
    """All experiments of one state of the sources.

    Attributes:
        schema_number: of this form.
        experiments: label -> its digests.
        refused: label -> the first sentence of why it does not build; a package that cannot be read stands
            here without a target.
    """

    model_config = _FROZEN

    schema_number: Literal[1] = Field(default=1, alias="schema")
    experiments: dict[str, ExperimentDigests]
    refused: dict[str, str] = {}


def load_manifest(data: bytes, *, source: str) -> DigestManifest:
    """Read a manifest.

    Raises:
        DocumentError: it is none; names the first wrong place.
    """
    try:
        return DigestManifest.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DocumentError(
            source,
            place,
            f"this is no digest manifest: {first['msg']}",
            "Name the file that a digest_manifest target builds, or a git revision",
        ) from None


def dump_manifest(manifest: DigestManifest) -> bytes:
    """Write a manifest; equal ones give equal bytes."""
    content = manifest.model_dump(mode="json", by_alias=True)
    return (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8")
