"""Claims on fixed versions: the same version means one recipe for everybody who shares a store.

Below `versions/<name>/<version>/claims/` stands a write-once sequence; its last object holds. The first launch of
a version writes 0001.json. The next number is written only for a recipe whose ledger says that it goes on from the
one before (`compatible`), so a repin that one person allows is seen by everybody.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.launcher.documents.canonical import canonical_json
from tools.launcher.store.keys import InvalidKey
from tools.launcher.store.numbered import last_number, numbered_key
from tools.launcher.store.object_store import ObjectConflict, ObjectStore, StoreError
from tools.launcher.store.records import utc_now

CLAIM_SCHEMA = 1

_SHOWN_DIGITS = 12

# One claim and its repins: of a version that is repinned more often, something else is wrong.
MAX_CLAIMS = 99

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class VersionClaim(BaseModel):
    """What a launch wants a fixed version to mean.

    Attributes:
        name, version: of the artifact.
        fingerprint: of the step that makes it, 64 hex digits.
        runtime_commit: commit of the runtime that trains.
        launch: launch digest, 64 hex digits.
        compatible: fingerprints whose claim this one may follow, from the version ledger.
        repins: how often the version was repinned until then, from the version ledger.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    name: str
    version: str
    fingerprint: Digest
    runtime_commit: str
    launch: Digest
    compatible: tuple[Digest, ...] = ()
    repins: int = Field(default=0, ge=0)


class StoredClaim(BaseModel):
    """A claim as the store has it. Fields of newer writers are passed over.

    Attributes:
        by: who claimed it.
        at: when, RFC 3339 in UTC.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    name: str
    version: str
    fingerprint: Digest
    runtime: str
    launch: Digest
    repins: int = 0
    by: str
    at: str


class ClaimRefused(StoreError):
    """The version is claimed for another recipe, or no store can hold a claim of that name.

    Unlike other errors of a store it is an answer: trying again gives the same.
    """


def claim_versions(store: ObjectStore, claims: Sequence[VersionClaim], by: str) -> None:
    """Claim each version, or find it claimed for the same recipe.

    Nothing is written if one of them is refused from the start. Safe for any number of concurrent callers:
    of different recipes for one free version exactly one is claimed.

    Args:
        store: shared by everybody for whom the versions mean the same.
        claims: the fixed versions that a launch may make.
        by: who launches.

    Raises:
        ClaimRefused: a version is claimed for another recipe; names both digests, who and when.
        StoreUnavailable: the store failed. Calling again is safe.
    """
    free = [(claim, number) for claim in claims if (number := _next_number(store, claim)) is not None]
    for claim, number in free:
        _claim(store, claim, by, number)


def latest_claim(store: ObjectStore, name: str, version: str) -> StoredClaim | None:
    """Return the claim that holds, None if the version is free. Raises as `claim_versions`."""
    return _latest(store, name, version)[1]


def _claim(store: ObjectStore, claim: VersionClaim, by: str, number: int) -> None:
    free: int | None = number
    while free is not None:
        content = {
            "schema": CLAIM_SCHEMA,
            "name": claim.name,
            "version": claim.version,
            "fingerprint": claim.fingerprint,
            "runtime": claim.runtime_commit,
            "launch": claim.launch,
            "repins": claim.repins,
            "by": by,
            "at": utc_now(),
        }
        try:
            store.put_if_absent(numbered_key(_prefix(claim.name, claim.version), free), _encoded(content))
        except ObjectConflict:
            free = _next_number(store, claim)  # Somebody else took the number: what they claimed decides.
        else:
            return


def _next_number(store: ObjectStore, claim: VersionClaim) -> int | None:
    """Return the number to claim under, None if the version is claimed for this recipe already.

    Raises:
        ClaimRefused: it is claimed for one that this recipe does not follow.
    """
    number, held = _latest(store, claim.name, claim.version)
    if held is None:
        return 1
    same = held.fingerprint == claim.fingerprint
    if same and claim.repins <= held.repins:
        return None
    if not same and held.fingerprint not in claim.compatible:
        raise ClaimRefused(_refusal(claim, held))
    if claim.repins <= held.repins:
        # Back to a runtime and away from it again: a checkout that has not seen the way back.
        raise ClaimRefused(
            f"{claim.name}@{claim.version} was repinned {held.repins} times when {held.by} claimed it at {held.at} for "
            f"recipe {held.fingerprint[:_SHOWN_DIGITS]}; the ledger of this build knows {claim.repins}. Update "
            "versions.lock.yaml (git pull) and build again"
        )
    if number >= MAX_CLAIMS:
        raise ClaimRefused(
            f"{claim.name}@{claim.version} was repinned {MAX_CLAIMS - 1} times. Publish a new version"
        )
    return number + 1


def _refusal(claim: VersionClaim, held: StoredClaim) -> str:
    same_runtime = held.runtime == claim.runtime_commit
    runtime = "" if same_runtime else f", runtime {held.runtime[:_SHOWN_DIGITS]}"
    ours = "" if same_runtime else f", runtime {claim.runtime_commit[:_SHOWN_DIGITS]}"
    fix = "Publish a new version, or build what was claimed"
    if not same_runtime:
        fix += ", or say in versions.lock.yaml why its checkpoints are compatible (docs/versions.md)"
    return (
        f"{claim.name}@{claim.version} is claimed for recipe {held.fingerprint[:_SHOWN_DIGITS]}{runtime} by {held.by} "
        f"since {held.at}; this launch has {claim.fingerprint[:_SHOWN_DIGITS]}{ours}. {fix}"
    )


def _latest(store: ObjectStore, name: str, version: str) -> tuple[int, StoredClaim | None]:
    prefix = _prefix(name, version)
    try:
        number = last_number(store, prefix)
    except InvalidKey as error:
        raise ClaimRefused(f"{name}@{version} cannot be claimed: {error}") from None
    if not number:
        return 0, None
    key = numbered_key(prefix, number)
    return number, _decoded(key, store.get(key))


def _prefix(name: str, version: str) -> str:
    return f"versions/{name}/{version}/claims/"


def _encoded(content: dict[str, Any]) -> bytes:
    return canonical_json(content) + b"\n"


def _decoded(key: str, data: bytes) -> StoredClaim:
    try:
        return StoredClaim.model_validate_json(data)
    except ValidationError as error:
        finding = error.errors()[0]
        place = ".".join(str(part) for part in finding["loc"]) or "the object"
        raise ClaimRefused(
            f"the claim {key} cannot be read: {place}: {finding['msg']}. It is damaged or of a newer launcher: "
            "update, or publish a new version"
        ) from None
