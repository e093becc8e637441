"""What a gate says. A gate is one condition that a launch must meet before anything is submitted."""

from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

GateId = Literal["clean-tree", "fixed-version", "credentials", "budget", "smoke", "reachable", "placeable"]
GATE_IDS: tuple[GateId, ...] = get_args(GateId)
"""In the order they are shown."""

OVERRIDABLE: frozenset[GateId] = frozenset({"clean-tree", "budget", "smoke", "placeable"})
"""Conditions that a person may answer for. The others cannot be true by anybody's word."""

GateState = Literal["passed", "missing", "overridden", "not_needed", "not_asked"]


class Gate(BaseModel):
    """One condition and how it stands.

    Attributes:
        id: its name, as `--override` takes it.
        state: missing stops the launch; overridden is missing and answered for; not_needed is no condition of this
            launch; not_asked is one, and only a launch asks whoever knows whether it is met.
        found: what was found, with its numbers: of a missing one, what is missing.
        fix: the command that satisfies a missing one; "" otherwise.
        override: who answers for it and why, as typed; "" unless overridden.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    id: GateId
    state: GateState
    found: str
    fix: str = ""
    override: str = ""


class GateReport(BaseModel):
    """All gates of one launch, in the order of GATE_IDS."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    gates: tuple[Gate, ...]

    @property
    def missing(self) -> tuple[Gate, ...]:
        """The gates that stop the launch; none: it may go on."""
        return tuple(gate for gate in self.gates if gate.state == "missing")

    def facts(self) -> dict[str, Any]:
        """Return what the intent records: how each gate was passed, and who answered for which."""
        return {
            "gates": {gate.id: gate.state for gate in self.gates},
            "overrides": {gate.id: gate.override for gate in self.gates if gate.state == "overridden"},
        }
