"""All gates of one launch together, with the overrides applied."""

from collections.abc import Iterable, Sequence

from tools.launcher.submit.gates.gate import GATE_IDS, Gate, GateReport
from tools.launcher.submit.gates.overrides import Override

UNUSED = "(the override was not needed)"
NOT_YET = "(the override answers for it if it is missing then)"


def evaluate(gates: Iterable[Gate], overrides: Sequence[Override]) -> GateReport:
    """Return the report.

    An override of a gate that does not stop the launch changes nothing: the gate keeps its state, and says
    that nobody had to answer for it, or that this is not known yet.

    Args:
        gates: one for each of GATE_IDS, in any order.
        overrides: at most one for each gate; see `collect_overrides`.

    Raises:
        ValueError: a gate is not there, or twice.
    """
    gates = tuple(gates)
    if sorted(gate.id for gate in gates) != sorted(GATE_IDS):
        raise ValueError(
            f"a report has each of {', '.join(GATE_IDS)} once, got {[gate.id for gate in gates]}"
        )
    answers = {override.gate: override.who_and_why for override in overrides}
    by_id = {gate.id: _answered(gate, answers.get(gate.id)) for gate in gates}
    return GateReport(gates=tuple(by_id[gate_id] for gate_id in GATE_IDS))


def _answered(gate: Gate, answer: str | None) -> Gate:
    if answer is None:
        return gate
    if gate.state != "missing":
        note = NOT_YET if gate.state == "not_asked" else UNUSED
        return gate.model_copy(update={"found": f"{gate.found} {note}"})
    return gate.model_copy(update={"state": "overridden", "override": answer, "fix": ""})
