"""The gates of all points of a sweep, shown together."""

import sys
from collections.abc import Mapping

from tools.launcher.cli.gates_display import show_gates
from tools.launcher.cli.launch_question import NOT_SUBMITTED
from tools.launcher.submit.gates.gate import GATE_IDS, Gate, GateReport
from tools.launcher.submit.gates.labels import verb_target


def show_together(reports: Mapping[str, GateReport], *, unless_passed: bool) -> None:
    """Show the gates of all points: a line for what is so of every one, else one for each answer.

    Args:
        reports: point -> its gates.
        unless_passed: show nothing where no gate is missing or answered for.
    """
    gates = [gate for report in reports.values() for gate in report.gates]
    if unless_passed and not any(gate.state in ("missing", "overridden") for gate in gates):
        return
    together = tuple(gate for gate_id in GATE_IDS for gate in _answers(gate_id, reports))
    show_gates(GateReport(gates=together), sys.stdout)


def missing_words(sweep: str, reports: Mapping[str, GateReport]) -> list[str]:
    """Return a sentence for each gate that stops the launch.

    Args:
        sweep: its label.
        reports: point -> its gates.
    """
    missing: dict[str, list[str]] = {}
    for name, report in reports.items():
        for gate in report.missing:
            missing.setdefault(gate.id, []).append(name)
    return [
        f"{gate_id} missing for {', '.join(names)}, see above; {NOT_SUBMITTED}"
        # What is said above pins one point.
        + (f". For all points: tools/bazel run {verb_target(sweep, 'pin')}" if gate_id == _PINS else "")
        for gate_id, names in missing.items()
    ]


_PINS = "fixed-version"


def _answers(gate_id: str, reports: Mapping[str, GateReport]) -> list[Gate]:
    """The different answers to one gate, each with its points in front."""
    points: dict[Gate, list[str]] = {}
    for name, report in reports.items():
        for gate in report.gates:
            if gate.id == gate_id:
                points.setdefault(gate, []).append(name)
    if len(points) == 1:
        return list(points)
    return [
        gate.model_copy(update={"found": f"{', '.join(names)}: {gate.found}"})
        for gate, names in points.items()
    ]
