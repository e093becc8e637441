"""The rooms of docs/architecture.md, enforced: which room may import what, and when."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

LAUNCHER = Path("tools/launcher")

ROOMS: dict[str, set[str]] = {
    "documents": set(),
    "catalog": {"documents"},
    "graph": {"documents"},
    "rl": {"catalog", "graph", "documents"},
    "preflight": {"rl", "catalog", "graph", "documents"},
    "render": {"rl", "graph", "documents"},
    "compare": {"preflight", "rl", "catalog", "graph", "documents"},
    "runtime_import": {"rl", "catalog", "documents"},
    "store": {"documents"},
    "iris": {"documents"},
    "submit": {"store", "iris", "graph", "documents"},
    "coordinator": {"store", "iris", "graph", "documents"},
    "rehearsal": {"store", "iris", "graph", "documents"},
    "observe": {"store", "iris", "documents"},
    "worker": set(),
}
"""Room -> rooms it may import. `cli` may import every room."""

BUILD_ACTION = ("documents", "catalog", "graph", "rl", "preflight", "render")
"""What runs inside a build action: no network, clock, environment, chance or other process."""

BUILD_ACTION_LIBRARIES = {"pydantic", "pydantic_core", "yaml"}
IMPURE = {
    "asyncio", "getpass", "http", "multiprocessing", "platform", "random", "secrets", "signal", "socket",
    "subprocess", "threading", "time", "urllib.request", "uuid",
}  # fmt: skip
TOUCHES_FILES = {"documents/files.py"}
"""Modules of the build action's rooms that may import os and tempfile."""

HEAVY = {"iris", "google", "grpc", "pyarrow", "connectrpc", "rigging", "finelog"}
MAY_BE_HEAVY = {"iris", "coordinator", "cli"}


def sources(room: str) -> Iterator[Path]:
    for path in sorted((LAUNCHER / room).rglob("*.py")):
        if not path.name.endswith(("_test.py", "_testlib.py", "_for_test.py")):
            yield path


def imports(path: Path) -> Iterator[tuple[str, int, bool]]:
    """Yield (module, line, whether it is imported with the module itself)."""

    def walk(node: ast.AST, at_import: bool) -> Iterator[tuple[str, int, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, child.lineno, at_import) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}:{child.lineno}: relative import"
                yield child.module or "", child.lineno, at_import
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                yield from walk(child, False)
            else:
                function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                yield from walk(child, at_import and not function)

    yield from walk(ast.parse(path.read_text(encoding="utf-8")), True)


def breaches_of_arrows(room: str, path: Path) -> list[str]:
    found = []
    for module, line, _ in imports(path):
        parts = module.split(".")
        if parts[:2] == ["tools", "launcher"] and len(parts) > 2:
            other = parts[2]
            if other != room and other not in ROOMS[room]:
                found.append(f"{path}:{line}: {room} may not import {other}")
    return found


def breaches_of_purity(path: Path) -> list[str]:
    found = []
    relative = path.relative_to(LAUNCHER).as_posix()
    for module, line, _ in imports(path):
        top = module.split(".")[0]
        if top in ("os", "tempfile", "shutil") and relative not in TOUCHES_FILES:
            found.append(f"{path}:{line}: {top} has no place in the build action")
        elif top in IMPURE or module in IMPURE:
            found.append(f"{path}:{line}: {module} makes the build action depend on the machine")
        elif top not in sys.stdlib_module_names | BUILD_ACTION_LIBRARIES | {"tools"}:
            found.append(f"{path}:{line}: the build action has no library {top}")
    return found


def breaches_of_lateness(room: str, path: Path) -> list[str]:
    found = []
    for module, line, at_import in imports(path):
        if module.split(".")[0] in HEAVY:
            if room not in MAY_BE_HEAVY and "gcs" not in path.name:
                found.append(f"{path}:{line}: {room} may not reach {module}")
            elif at_import:
                found.append(f"{path}:{line}: {module} must be imported inside a function")
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_only_what_the_plan_allows(room):
    assert [breach for path in sources(room) for breach in breaches_of_arrows(room, path)] == []


@pytest.mark.parametrize("room", BUILD_ACTION)
def test_the_build_action_is_pure(room):
    assert [breach for path in sources(room) for breach in breaches_of_purity(path)] == []


@pytest.mark.parametrize("room", [*ROOMS, "cli"])
def test_heavy_libraries_are_reached_late_and_from_few_places(room):
    assert [breach for path in sources(room) for breach in breaches_of_lateness(room, path)] == []


def test_every_folder_is_a_room_of_the_plan():
    folders = {path.parent.relative_to(LAUNCHER).parts[0] for path in LAUNCHER.rglob("*/*.py")}
    assert folders - {"private"} == {*ROOMS, "cli"}  # private/ belongs to the Starlark


@pytest.mark.parametrize(
    ("source", "check"),
    [
        ("from tools.launcher.submit.machine import x", lambda p: breaches_of_arrows("rl", p)),
        ("def f():\n    from tools.launcher.cli import x", lambda p: breaches_of_arrows("submit", p)),
        ("import socket", breaches_of_purity),
        ("import numpy", breaches_of_purity),
        ("import os", breaches_of_purity),
        ("import iris.client", lambda p: breaches_of_lateness("iris", p)),
        ("def f():\n    import grpc", lambda p: breaches_of_lateness("store", p)),
    ],
)
def test_the_rules_can_fail(tmp_path, monkeypatch, source, check):
    monkeypatch.setattr(sys.modules[__name__], "LAUNCHER", tmp_path)
    path = tmp_path / "x.py"
    path.write_text(source)
    assert len(check(path)) == 1


def test_the_build_action_loads_nothing_heavy():
    code = (
        "import sys, tools.launcher.cli.preflight_action\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    command = [sys.executable, "-c", code]
    loaded = set(
        subprocess.run(
            command, capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
        ).stdout.split()
    )
    assert "pydantic" in loaded
    assert not loaded & (HEAVY | {"numpy", "rich", "requests", "safetensors"})


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
