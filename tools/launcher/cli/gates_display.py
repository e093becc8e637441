"""The gates of a launch as text: aligned lines anywhere, colours on a terminal only."""

from typing import TextIO

from tools.launcher.submit.gates.gate import OVERRIDABLE, Gate, GateReport, GateState
from tools.launcher.submit.gates.overrides import ALLOW_DIRTY

_TITLE = "gates"

_STYLES: dict[GateState, str] = {
    "passed": "green",
    "missing": "red",
    "overridden": "yellow",
    "not_needed": "dim",
    "not_asked": "magenta",
}


def gates_text(report: GateReport) -> str:
    """Return a line for each gate (id, state, what was found), and what to do below each missing one."""
    lines = [_TITLE, *(line for gate in report.gates for line in _lines(gate, report))]
    return "".join(f"{line}\n" for line in lines)


def show_gates(report: GateReport, stream: TextIO) -> None:
    """Write `gates_text` to `stream`, with colours if it is a terminal. Lines are never broken, so that a
    command can be copied."""
    if not stream.isatty():
        stream.write(gates_text(report))
        return
    from rich.console import Console
    from rich.text import Text

    # The first line of each gate has its state where all of them have it.
    start = len(_head("", report))
    states = {_lines(gate, report)[0]: gate.state for gate in report.gates}
    console = Console(file=stream, highlight=False)
    for line in gates_text(report).splitlines():
        text = Text(line)
        if line in states:
            text.stylize(_STYLES[states[line]], start, start + len(_word(states[line])))
        console.print(text, soft_wrap=True)


def _lines(gate: Gate, report: GateReport) -> list[str]:
    width = max(len(_word(each.state)) for each in report.gates)
    below = " " * (len(_head("", report)) + width + 2)
    return [
        f"{_head(gate.id, report)}{_word(gate.state):<{width}}  {gate.found}",
        *([f"{below}answered for by {gate.override}"] if gate.override else []),
        *([f"{below}fix: {gate.fix}"] if gate.fix else []),
        *([f'{below}or answer for it: --override {gate.id}="who: why"'] if _answerable(gate) else []),
    ]


def _answerable(gate: Gate) -> bool:
    """True if a flag that the fix does not name would do as well."""
    return gate.state == "missing" and gate.id in OVERRIDABLE and ALLOW_DIRTY not in gate.fix


def _head(gate_id: str, report: GateReport) -> str:
    return f"  {gate_id:<{max(len(gate.id) for gate in report.gates)}}  "


def _word(state: GateState) -> str:
    return state.replace("_", " ")
