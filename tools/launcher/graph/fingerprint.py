"""Fingerprints of steps: what an artifact is made of, never where it runs."""

from tools.launcher.documents.canonical import digest_of
from tools.launcher.graph.step import ArtifactStep

IDENTITY_DIGITS = 8
"""Hex digits of a fingerprint inside `name@version:fingerprint` (contract, typed-spec.md §3)."""


def step_fingerprint(step: ArtifactStep) -> str:
    """Return the fingerprint of `step`.

    An artifact that exists already keeps the fingerprint of its record, because what made it
    is not in this graph. Any other step has the SHA-256 (64 hex digits) over kind,
    configuration and the identities of its dependencies, in order.

    Raises:
        CanonicalEncodingError: if the configuration holds a value without identity.
    """
    if step.recorded_fingerprint is not None:
        return step.recorded_fingerprint
    return digest_of(
        {"kind": step.kind, "config": step.config, "deps": [step_identity(dep) for dep in step.deps]}
    )


def step_identity(step: ArtifactStep) -> str:
    """Return `name@version:fingerprint` with the first eight digits of the fingerprint."""
    return identity_with(step, step_fingerprint(step))


def identity_with(step: ArtifactStep, fingerprint: str) -> str:
    """Return the identity of `step` for a caller that has its fingerprint."""
    return f"{step.address}:{fingerprint[:IDENTITY_DIGITS]}"
