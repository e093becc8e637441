"""fixed-version: what a shared cluster makes has a version that never means anything else."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from tools.launcher.graph.versions import is_mutable
from tools.launcher.submit.gates.gate import Gate
from tools.launcher.submit.gates.labels import verb_target


class VersionFacts(BaseModel):
    """What the gate reads.

    Attributes:
        label: target of the experiment, `//package:name`.
        step: `name@version` of the RL step; of the last one, if none trains.
        made: `name@version` of every step that the launch may make; adopted ones are not among them.
        pinned: whether versions.lock.yaml has the RL step's version; None if that is not known.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    label: str
    step: str
    made: tuple[str, ...]
    pinned: bool | None


def fixed_version(facts: VersionFacts) -> Gate:
    """Return the gate for the versions of a launch on a cluster of others."""
    mutable = [address for address in facts.made if is_mutable(address.rpartition("@")[2])]
    pin = f"tools/bazel run {verb_target(facts.label, 'pin')}"
    if mutable:
        return Gate(
            id="fixed-version",
            state="missing",
            found=f"{_listed(mutable)}: a mutable version is for the local cluster only",
            fix=(
                f'write version = "YYYY.MM.DD" (a day, with .N for a second one) at {facts.label}, '
                f"then: {pin}"
            ),
        )
    if facts.pinned is False:
        return Gate(
            id="fixed-version",
            state="missing",
            found=f"{facts.step} is not pinned in versions.lock.yaml",
            fix=f"{pin}, then commit versions.lock.yaml",
        )
    if not facts.made:
        return Gate(
            id="fixed-version", state="not_needed", found="the launch makes nothing: all it reads exists"
        )
    pinned = "fixed and pinned" if facts.pinned else "fixed"
    return Gate(id="fixed-version", state="passed", found=f"{facts.step} is {pinned}")


def _listed(addresses: Sequence[str]) -> str:
    return ", ".join(addresses)
