"""What a committed file must not hold, since it works in one world only.

The two worlds are Bazelisk with the real rules_python, and tools/bazel's
air-gapped Bazel with Debian's rules and our module extensions. Each rule here
is a row of that difference that somebody has measured; a file that keeps to
them builds in both.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

STARLARK_NAMES = frozenset({"BUILD", "BUILD.bazel", "MODULE.bazel", "WORKSPACE"})

PYTHON_RULES = frozenset({"py_binary", "py_library", "py_runtime", "py_runtime_pair", "py_test", "py_import"})

# Files of @rules_python//python that both have.
SHARED_BZL = frozenset(
    {
        "defs.bzl",
        "py_binary.bzl",
        "py_import.bzl",
        "py_info.bzl",
        "py_library.bzl",
        "py_runtime.bzl",
        "py_runtime_info.bzl",
        "py_runtime_pair.bzl",
        "py_test.bzl",
    }
)
# Other labels of rules_python that both have.
SHARED_LABELS = frozenset(
    {
        "@rules_python//python/extensions:pip.bzl",
        "@rules_python//python/extensions:python.bzl",
        "@rules_python//python/runfiles",
        "@rules_python//python/runfiles:runfiles",
    }
)
# Attributes that only the real rules have.
REAL_ONLY_ATTRIBUTES = frozenset(
    {
        "config_settings",
        "interpreter_args",
        "main_module",
        "precompile",
        "precompile_invalidation_mode",
        "precompile_optimize_level",
        "precompile_source_retention",
        "pyc_collection",
        "pyi_deps",
        "pyi_srcs",
    }
)
REAL_ONLY_SYMBOLS = frozenset({"current_py_toolchain", "py_console_script_binary"})
# Targets of a wheel that only the real hub has.
REAL_ONLY_WHEEL_TARGETS = frozenset({"whl", "data", "extracted_whl_files"})

PIP_PARSE_REQUIRED = frozenset({"hub_name", "python_version", "requirements_lock"})
PIP_PARSE_ALLOWED = PIP_PARSE_REQUIRED | {"extra_pip_args", "download_only", "quiet", "timeout"}
HUB_NAME = "slipway_pypi"
RULES_PYTHON_VERSION = "2.3.2"

# A path into another repository by its folder, or a canonical repository name:
# both depend on the Bazel version and on who made the repository.
EXTERNAL_PATH = re.compile(r"(?:^|[\s/'\"=:])external/")
CANONICAL_NAME = re.compile(r"@@\w|\brules_python(?:~|\+\+)")
REQUIRED_OPTIONS = (
    "common --enable_bzlmod",
    "common --noenable_workspace",
    "common --incompatible_default_to_explicit_init_py",
)

# Files that must quote what they refuse or make.
EXEMPT = {
    "tests/lint/workspace_files_test.py": "names of what a test's runfiles hold",
    "tests/workspace/both_worlds.py": "this list",
    "tests/workspace/both_worlds_test.py": "examples of each refusal",
}
# Modules laid over Debian's rules_python: they are the air-gapped world.
OVERLAY = "third_party/bazel/overlay/"


@dataclass(frozen=True)
class Finding:
    """A place that works in one world only, and what to write instead."""

    file: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: [{self.rule}] {self.text}"


@dataclass(frozen=True)
class Source:
    """A parsed BUILD, MODULE.bazel, .bzl or Python file."""

    file: str
    tree: ast.Module

    @property
    def starlark(self) -> bool:
        return is_starlark(self.file)

    def calls(self) -> Iterator[ast.Call]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))

    def finding(self, node: ast.AST, rule: str, text: str) -> Finding:
        return Finding(self.file, getattr(node, "lineno", 1), rule, text)


def is_starlark(file: str) -> bool:
    path = PurePosixPath(file)
    return path.name in STARLARK_NAMES or path.suffix == ".bzl" or path.name.endswith(".MODULE.bazel")


def _name(node: ast.expr) -> str:
    """`native.py_test` of a call's function, or ''."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_name(node.value)}.{node.attr}"
    return ""


def _text(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _strings(source: Source) -> Iterator[tuple[ast.Constant, str]]:
    """All string constants but the documentation."""
    documentation = {id(node.value) for node in ast.walk(source.tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(source.tree):
        text = _text(node)
        if isinstance(node, ast.Constant) and text is not None and id(node) not in documentation:
            yield node, text


def _loads(source: Source) -> Iterator[tuple[ast.Call, str, list[str]]]:
    """(call, label, names that it binds) of each load()."""
    for call in source.calls():
        if _name(call.func) == "load" and call.args:
            names = [_text(arg) or "" for arg in call.args[1:]] + [word.arg or "" for word in call.keywords]
            yield call, _text(call.args[0]) or "", names


def native_rule(source: Source) -> Iterator[Finding]:
    """A Python rule that was not loaded."""
    if not source.starlark:
        return
    loaded = {name for _, _, names in _loads(source) for name in names}
    defined = {node.name for node in ast.walk(source.tree) if isinstance(node, ast.FunctionDef)}
    for call in source.calls():
        name = _name(call.func)
        if name.removeprefix("native.") in PYTHON_RULES and name not in loaded | defined:
            rule = name.removeprefix("native.")
            yield source.finding(
                call, "native-rule", f'{name} is not loaded; load("@rules_python//python:defs.bzl", "{rule}")'
            )


def real_only_attribute(source: Source) -> Iterator[Finding]:
    """An attribute of the Python rules that Debian's do not have."""
    if not source.starlark:
        return
    for call in source.calls():
        name = _name(call.func)
        if name not in PYTHON_RULES:
            continue
        for keyword in call.keywords:
            if keyword.arg in REAL_ONLY_ATTRIBUTES:
                yield source.finding(
                    keyword.value,
                    "real-only-attribute",
                    f"{name} has no attribute {keyword.arg} air-gapped; leave it out",
                )
            elif (
                keyword.arg == "python_version"
                and _text(keyword.value) != "PY3"
                and name != "py_runtime_pair"
            ):
                yield source.finding(
                    keyword.value,
                    "real-only-attribute",
                    f'{name} takes no python_version but "PY3" air-gapped; MODULE.bazel sets the version',
                )


def real_only_label(source: Source) -> Iterator[Finding]:
    """A file, target or symbol that only the real rules_python or hub has."""
    if not source.starlark:
        return
    for call, label, names in _loads(source):
        for name in sorted(REAL_ONLY_SYMBOLS.intersection(names)):
            yield source.finding(call, "real-only-label", f"{name} does not exist air-gapped; do without")
        if label.startswith("@rules_python//python:") and label.rpartition(":")[2] not in SHARED_BZL:
            yield source.finding(
                call,
                "real-only-label",
                f"{label} is not the same air-gapped; load from {', '.join(sorted(SHARED_BZL))}",
            )
    for node, text in _strings(source):
        if text.startswith("@rules_python//") and not text.startswith("@rules_python//python:"):
            if text not in SHARED_LABELS:
                yield source.finding(node, "real-only-label", f"{text} does not exist air-gapped; do without")
        elif text.startswith("@rules_python//python:") and not text.endswith(".bzl"):
            yield source.finding(node, "real-only-label", f"{text} does not exist air-gapped; do without")
        wheel = re.fullmatch(r"@pypi//[^:]+:(\w+)", text)
        if wheel and wheel[1] in REAL_ONLY_WHEEL_TARGETS:
            yield source.finding(
                node,
                "real-only-label",
                f"{text} does not exist air-gapped; use :pkg or :dist_info of the wheel",
            )


def hard_coded_repository(source: Source) -> Iterator[Finding]:
    """A path or name that tells how Bazel lays out other repositories."""
    for node, text in _strings(source):
        if EXTERNAL_PATH.search(text) or CANONICAL_NAME.search(text):
            yield source.finding(
                node,
                "hard-coded-repository",
                f"{text!r} depends on the Bazel version; use a label, or $(rlocationpath)",
            )


def real_only_python(source: Source) -> Iterator[Finding]:
    """Calls that only one of the worlds answers."""
    if source.starlark:
        return
    for call in source.calls():
        name = _name(call.func)
        if name in ("importlib.metadata.files", "metadata.files"):
            yield source.finding(
                call, "real-only-python", f"{name}() is None air-gapped; use importlib.resources"
            )
        elif name.endswith(("runfiles.root", "Create().root")) or name == "runfiles.root":
            yield source.finding(
                call, "real-only-python", f"{name}() does not exist air-gapped; use Rlocation()"
            )


def child_without_path(source: Source) -> Iterator[Finding]:
    """A Python child process that gets neither an environment nor code that sets sys.path."""
    if source.starlark:
        return
    functions = [node for node in ast.walk(source.tree) if isinstance(node, ast.FunctionDef)]
    sets_path = {
        id(call)
        for function in functions
        if any("sys.path" in (_text(node) or "") for node in ast.walk(function))
        for call in ast.walk(function)
    }
    for call in source.calls():
        command = call.args[0] if call.args else None
        if (
            not isinstance(command, ast.List)
            or not command.elts
            or _name(command.elts[0]) != "sys.executable"
        ):
            continue
        if id(call) not in sets_path and not any(keyword.arg in ("env", None) for keyword in call.keywords):
            yield source.finding(
                call,
                "child-without-path",
                "a Python child finds no package with the real rules; "
                "pass env with PYTHONPATH=os.pathsep.join(sys.path)",
            )


def start_script_taken(source: Source) -> Iterator[Finding]:
    """A search for Python files that takes the start scripts of the real rules for sources."""
    # A test makes what it searches; what a program ships or runs must be the same everywhere.
    if source.starlark or source.file.endswith("_test.py"):
        return
    if any("_stage2_bootstrap" in text for _, text in _strings(source)):
        return
    for call in source.calls():
        pattern = (_text(call.args[0]) if call.args else None) or ""
        deep = _name(call.func).endswith(".rglob") or pattern.startswith("**/")
        if deep and pattern.endswith("*.py"):
            yield source.finding(
                call,
                "start-script-taken",
                "the real rules lay _x_stage2_bootstrap.py beside the sources of a program x; skip it",
            )


def module_file(source: Source) -> Iterator[Finding]:
    """What MODULE.bazel asks of rules_python."""
    if source.file != "MODULE.bazel":
        return
    seen = set()
    for call in source.calls():
        name = _name(call.func)
        values = {keyword.arg or "": _text(keyword.value) for keyword in call.keywords}
        if name == "pip.parse":
            seen.add("pip.parse")
            for argument in sorted(values.keys() - PIP_PARSE_ALLOWED):
                yield source.finding(
                    call, "module-file", f"pip.parse takes no {argument} air-gapped; leave it out"
                )
            for argument in sorted(PIP_PARSE_REQUIRED - values.keys()):
                yield source.finding(call, "module-file", f"pip.parse needs {argument}")
            if values.get("hub_name") != HUB_NAME:
                yield source.finding(
                    call,
                    "module-file",
                    f'the hub is named "{HUB_NAME}": two hubs must not meet, and rules_python reserves pypi',
                )
        elif name == "use_repo" and call.args and _name(call.args[0]) == "pip":
            if values != {"pypi": HUB_NAME} or len(call.args) != 1:
                yield source.finding(call, "module-file", f'write use_repo(pip, pypi = "{HUB_NAME}")')
        elif name in ("python.defaults", "python.toolchain"):
            if values.get("python_version") == "3.12":
                seen.add(name)
        elif name == "bazel_dep" and values.get("name") == "rules_python":
            seen.add("rules_python")
            if values.get("version") != RULES_PYTHON_VERSION:
                yield source.finding(
                    call,
                    "module-file",
                    f"rules_python {RULES_PYTHON_VERSION} is the version that both worlds were built with",
                )
    for missing in sorted({"pip.parse", "python.defaults", "python.toolchain", "rules_python"} - seen):
        text = f'{missing} is missing; for python.*: python_version = "3.12" in both'
        yield Finding(source.file, 1, "module-file", text)


RULES: tuple[Callable[[Source], Iterator[Finding]], ...] = (
    native_rule,
    real_only_attribute,
    real_only_label,
    hard_coded_repository,
    real_only_python,
    child_without_path,
    start_script_taken,
    module_file,
)


def option_findings(files: Mapping[str, str]) -> Iterator[Finding]:
    """.bazelrc, scripts and WORKSPACE: options that one of the worlds refuses."""
    for file, text in files.items():
        path = PurePosixPath(file)
        if not (path.name.endswith(".bazelrc") or path.suffix == ".sh" or file in ("tools/bazel", ".ci/run")):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            code = line.split("#")[0]
            if re.search(r"--(no)?@rules_python", code):
                yield Finding(
                    file, number, "option", "a flag of rules_python is an error air-gapped; leave it out"
                )
            if re.search(r"--enable_workspace(?!=false)|--noenable_bzlmod|--enable_bzlmod=false", code):
                yield Finding(
                    file,
                    number,
                    "option",
                    "WORKSPACE mode fetches what is not there; MODULE.bazel is the source",
                )
    lines = files.get(".bazelrc", "").splitlines()
    for option in REQUIRED_OPTIONS:
        if option not in lines:
            yield Finding(".bazelrc", 1, "option", f"'{option}' is missing")
    for number, line in enumerate(files.get("WORKSPACE", "").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield Finding(
                "WORKSPACE", number, "option", "WORKSPACE is a stub; declare dependencies in MODULE.bazel"
            )


def root_name_findings(files: Mapping[str, str]) -> Iterator[Finding]:
    """Root packages and modules that hide, or are hidden by, the standard library."""
    roots = {PurePosixPath(file).parts[0] for file in files if file.endswith(".py")}
    for root in sorted(roots):
        name = root.removesuffix(".py")
        if name in sys.stdlib_module_names:
            yield Finding(
                root,
                1,
                "root-name",
                f"'{name}' is a module of the standard library, which wins in one world; rename",
            )


def find_all(files: Mapping[str, str]) -> list[Finding]:
    """Findings of all rules.

    Args:
        files: text by path below the workspace root, of all committed files.

    Returns:
        The findings in the order of files and lines. Raises SyntaxError for a
        file that is neither Starlark nor Python by its name's promise.
    """
    found = [*option_findings(files), *root_name_findings(files)]
    for file, text in files.items():
        if file in EXEMPT or file.startswith(OVERLAY) or not (is_starlark(file) or file.endswith(".py")):
            continue
        source = Source(file, ast.parse(text, file))
        for rule in RULES:
            found += rule(source)
    return sorted(found, key=lambda finding: (finding.file, finding.line, finding.rule))
