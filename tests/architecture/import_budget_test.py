"""What each command imports before it works: how many modules, and none of the heavy ones.

Start-up is what a command costs, and modules are most of it. They are counted because seconds depend on the
machine; `tests/bench/startup.py` has the seconds.
"""

import collections
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

HEAVY = frozenset({"iris", "google", "grpc", "pyarrow", "connectrpc", "rigging", "finelog"})
NOT_TO_JUDGE = HEAVY | {"numpy", "rich", "hypothesis", "_pytest"}
"""What a build, `lint` and the verbs that only read have no use for."""

_DOCUMENT = "tests/contract/examples/smoke-fsdp.yaml"


@dataclass(frozen=True)
class Budget:
    """What a command may import."""

    statement: str
    """Python that starts the command; it may end with SystemExit."""
    most: int
    """Modules beyond those of a Python that does nothing."""
    never: frozenset[str] = NOT_TO_JUDGE
    """Top-level packages."""


def launcher(*arguments: str) -> str:
    return f"from tools.launcher.cli.commands import run\nrun({list(arguments)!r})"


def program(module: str, *arguments: str) -> str:
    return f"import sys\nsys.argv[1:] = {list(arguments)!r}\nfrom {module} import main\nmain()"


BUDGETS: dict[str, Budget] = {
    "launcher --help": Budget(launcher("--help"), most=25, never=NOT_TO_JUDGE | {"absl", "pydantic", "yaml"}),
    "lint, one document": Budget(
        program("tools.launcher.cli.lint_main", "--format=json", _DOCUMENT), most=395
    ),
    "preflight": Budget("import tools.launcher.cli.preflight_main", most=420),
    "plan": Budget("from tools.launcher.cli.plan_command import run\nrun(['--help'])", most=245),
    "pin": Budget(program("tools.launcher.cli.pin_main", "--help"), most=270),
    "launch": Budget(launcher("launch", "--help"), most=405),
    "rehearse": Budget(launcher("rehearse", "--help"), most=405),
    "status": Budget(launcher("status", "--help"), most=355),
    "verify": Budget(launcher("verify", "--help"), most=355),
    "coordinator": Budget("import tools.launcher.coordinator.main", most=285),
    "rehearsal": Budget("import tools.launcher.rehearsal.__main__", most=100, never=HEAVY),
}
"""A command that needs more: see first whether a function can import it when it is used."""

_STARTED = """
import sys
before = set(sys.modules)
try:
    exec({statement!r})
except SystemExit:
    pass
print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""


def imported(statement: str) -> list[str]:
    """Return the modules that a fresh Python has after `statement`, beyond those it starts with."""
    done = subprocess.run(
        [sys.executable, "-c", _STARTED.format(statement=statement)],
        capture_output=True,
        text=True,
        timeout=120,
        # As this Python finds them: under Bazel not every entry comes from the environment.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1].split()


def excess(budget: Budget, modules: list[str]) -> str:
    """Say what is over the budget; "" if nothing is."""
    packages = collections.Counter(module.partition(".")[0] for module in modules)
    lines = [f"it imports {name}, which it must not" for name in sorted(budget.never & packages.keys())]
    if len(modules) > budget.most:
        most = ", ".join(f"{name} {count}" for name, count in packages.most_common(12))
        lines.append(f"it imports {len(modules)} modules, the budget is {budget.most}. Most of them: {most}")
    return "\n".join(lines)


@pytest.mark.parametrize("command", BUDGETS)
def test_a_command_stays_within_its_budget(command):
    budget = BUDGETS[command]
    assert excess(budget, imported(budget.statement)) == ""


def test_a_budget_that_is_exceeded_says_by_what():
    modules = imported("import pydantic.main, json.tool")
    assert excess(Budget("", most=1000, never=frozenset({"yaml"})), modules) == ""
    said = excess(Budget("", most=3, never=frozenset({"pydantic"})), modules)
    assert "it imports pydantic, which it must not" in said
    assert f"it imports {len(modules)} modules, the budget is 3. Most of them: pydantic " in said


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
