"""reachable: the cluster's controller answers."""

from pydantic import BaseModel, ConfigDict

from tools.launcher.submit.gates.gate import Gate


class Reach(BaseModel):
    """What came of asking the controller.

    Attributes:
        where: which controller was asked, in words.
        user: who it takes the asker for; "" if it was not asked that.
        problem: why there was no answer, as a sentence; "" if there was one.
        fix: the command that brings a controller within reach; "" if it is.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    where: str
    user: str = ""
    problem: str = ""
    fix: str = ""


def reachable(reach: Reach) -> Gate:
    """Return the gate for the cluster's controller."""
    if reach.problem:
        return Gate(id="reachable", state="missing", found=reach.problem, fix=reach.fix)
    known = f", and knows {reach.user}" if reach.user else ""
    return Gate(id="reachable", state="passed", found=f"{reach.where} answers{known}")
