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

from tools.launcher.cli import exit_codes
from tools.launcher.cli.commands import COMMANDS
from tools.launcher.observe.run_testlib import finished_run

HEAVY = frozenset({"iris", "google", "grpc", "pyarrow", "connectrpc", "rigging", "finelog"})
NOT_TO_JUDGE = HEAVY | {"numpy", "rich", "hypothesis", "_pytest"}
"""What a build, `lint` and the verbs that only read have no use for."""
NOT_TO_START = frozenset({"absl", "email", "logging", "xml", "zipfile"})
"""What other libraries bring for what `lint` has none of: absl its flags, pydantic its plugins."""

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


def program(module: str, *arguments: str) -> str:
    return (
        f"import sys\nsys.argv[1:] = {list(arguments)!r}\n"
        "from tools.launcher.cli.process_boundary import run_as_process\n"
        f"from {module} import main\nrun_as_process(main)"
    )


def launcher(*arguments: str) -> str:
    return program("tools.launcher.cli.launcher_main", *arguments)


def asked(*arguments: str, status: int = exit_codes.OK) -> str:
    """A command that is asked about the run of `own_run`, and ends with `status`."""
    return f"from tools.launcher.cli.commands import run\nassert run({list(arguments)!r}) == {status}"


BUDGETS: dict[str, Budget] = {
    "launcher --help": Budget(launcher("--help"), most=26, never=NOT_TO_JUDGE | {"absl", "pydantic", "yaml"}),
    "lint, one document": Budget(
        program("tools.launcher.cli.lint_main", "--format=json", _DOCUMENT),
        most=308,
        never=NOT_TO_JUDGE | NOT_TO_START,
    ),
    "preflight": Budget("import tools.launcher.cli.preflight_main", most=390),
    "plan": Budget(
        program("tools.launcher.cli.plan_main", "--help"),
        most=48,
        never=NOT_TO_JUDGE | {"absl", "pydantic", "yaml"},
    ),
    "pin": Budget(program("tools.launcher.cli.pin_main", "--help"), most=195),
    "launch": Budget(launcher("launch", "--help"), most=336),
    "rehearse": Budget(launcher("rehearse", "--help"), most=336),
    "sweep-launch": Budget(launcher("sweep-launch", "--help"), most=349),
    "sweep-rehearse": Budget(launcher("sweep-rehearse", "--help"), most=349),
    "sweep-plan": Budget(launcher("sweep-plan", "--help"), most=280),
    "runs": Budget(asked("runs"), most=325),
    "status": Budget(asked("status", "cats"), most=330),
    "watch": Budget(asked("watch", "cats", "--once"), most=336),
    # Without a local Iris: the record's own account.
    "logs": Budget(asked("logs", "cats", status=exit_codes.UNKNOWN), most=318),
    "verify": Budget(asked("verify", "cats"), most=332),
    "cancel": Budget(launcher("cancel", "--help"), most=301),
    "relaunch": Budget(launcher("relaunch", "--help"), most=339),
    "provenance": Budget(launcher("provenance", "--help"), most=284),
    "diff": Budget(launcher("diff", "--help"), most=336),
    "affected": Budget(launcher("affected", "--help"), most=331),
    "import-runtime": Budget(launcher("import-runtime", "--help"), most=286),
    "sweep-pin": Budget(launcher("sweep-pin", "--help"), most=280),
    "new": Budget(launcher("new", "--help"), most=100),
    "completion": Budget(launcher("completion", "--help"), most=46),
    "local": Budget(launcher("local", "--help"), most=281),
    "coordinator": Budget("import tools.launcher.coordinator.main", most=274),
    "rehearsal": Budget("import tools.launcher.rehearsal.__main__", most=92, never=HEAVY),
}
"""A command that needs more: see first whether a function can import it when it is used."""

_STARTED = """
import sys
before = set(sys.modules)
try:
    exec({statement!r})
except SystemExit:
    pass
names = set(sys.modules) - before
# What has no spec was put there, and not imported.
print(*sorted(name for name in names if getattr(sys.modules[name], "__spec__", None)), file=sys.stderr)
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


@pytest.fixture(scope="module", autouse=True)
def own_run(tmp_path_factory):
    """A finished run in a state folder of its own, for the commands that are asked about one."""
    state = tmp_path_factory.mktemp("state")
    finished_run(state / "slipway")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(state))
        for name in ("SLIPWAY_STORE", "SLIPWAY_CONTROLLER"):
            patch.delenv(name, raising=False)
        yield


def test_every_command_has_a_budget():
    assert COMMANDS.keys() - {command.partition(",")[0] for command in BUDGETS} == set()


@pytest.mark.parametrize("command", BUDGETS)
def test_a_command_stays_within_its_budget(command):
    budget = BUDGETS[command]
    assert excess(budget, imported(budget.statement)) == ""


_BUILT = """
{statement}
from pydantic import BaseModel

def below(model):
    return {{model}}.union(*map(below, model.__subclasses__()))

rooms = ("tools.launcher.catalog.cards", "tools.launcher.graph.", "tools.launcher.rl.")
built = [model for model in below(BaseModel) if model.__module__.startswith(rooms) and model.__pydantic_complete__]
print("built", *sorted(model.__name__ for model in built), file=sys.stderr)
"""


def test_lint_of_a_document_builds_no_schema_of_what_it_has_not():
    """No card is given, and the document has no artifact graph: a schema of either is a tenth of the start."""
    code = _BUILT.format(statement=BUDGETS["lint, one document"].statement)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert (done.returncode, '"verdict": "accept"' in done.stdout) == (0, True), done.stderr
    # The lengths that the document writes out.
    assert done.stderr.splitlines()[-1].split() == ["built", "SkyRLContextBudget"]


def test_a_budget_that_is_exceeded_says_by_what():
    modules = imported("import pydantic.main, json.tool")
    assert excess(Budget("", most=1000, never=frozenset({"yaml"})), modules) == ""
    said = excess(Budget("", most=3, never=frozenset({"pydantic"})), modules)
    assert "it imports pydantic, which it must not" in said
    assert f"it imports {len(modules)} modules, the budget is 3. Most of them: pydantic " in said


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
