"""placeable: the cluster has, or can make, nodes for the whole gang."""

from pydantic import BaseModel, ConfigDict

from tools.launcher.submit.gates.gate import Gate


class Placement(BaseModel):
    """What the cluster's capacity says about an allocation.

    Attributes:
        fits: whether the gang can be placed; None if that is not known.
        found: what that is based on, with its numbers.
        fix: what makes it fit; "" if it does.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    fits: bool | None
    found: str
    fix: str = ""


def placeable(placement: Placement) -> Gate:
    """Return the gate for the allocation."""
    if placement.fits:
        return Gate(id="placeable", state="passed", found=placement.found)
    found = f"not known: {placement.found}" if placement.fits is None else placement.found
    return Gate(id="placeable", state="missing", found=found, fix=placement.fix)
