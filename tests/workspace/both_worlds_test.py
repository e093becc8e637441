"""Each rule of both_worlds.py refuses and lets pass, and the checkout keeps to all."""

import sys
from pathlib import Path

import pytest

from tests.lint.workspace_files import workspace_files
from tests.workspace.both_worlds import EXEMPT, OVERLAY, REQUIRED_OPTIONS, Finding, find_all

LOAD = 'load("@rules_python//python:defs.bzl", "py_binary", "py_library", "py_test")\n'

MODULE = """\
bazel_dep(name = "rules_python", version = "2.3.2")
python = use_extension("@rules_python//python/extensions:python.bzl", "python")
python.defaults(python_version = "3.12")
python.toolchain(python_version = "3.12")
pip = use_extension("@rules_python//python/extensions:pip.bzl", "pip")
pip.parse(
    hub_name = "slipway_pypi",
    python_version = "3.12",
    requirements_lock = "//:lock.txt",
)
use_repo(pip, pypi = "slipway_pypi")
"""

GOOD = {
    "MODULE.bazel": MODULE,
    ".bazelrc": "\n".join(REQUIRED_OPTIONS) + "\n",
    "WORKSPACE": "# a stub\n",
}

PASSING = {
    "loaded": ("BUILD.bazel", LOAD + 'py_test(name = "a", srcs = ["a.py"], env = {}, main = "a.py")'),
    "own macro": ("x/defs.bzl", "def py_test(name):\n    pass\n\ndef all():\n    py_test(name = 'a')"),
    "PY3": ("BUILD.bazel", LOAD + 'py_binary(name = "a", python_version = "PY3")'),
    "same attribute of another rule": ("BUILD.bazel", 'config(name = "a", config_settings = {})'),
    "runfiles": ("BUILD.bazel", LOAD + 'py_library(name = "a", deps = ["@rules_python//python/runfiles"])'),
    "single rule file": ("x.bzl", 'load("@rules_python//python:py_info.bzl", "PyInfo")'),
    "wheel": ("BUILD.bazel", LOAD + 'py_library(name = "a", deps = ["@pypi//b", "@pypi//b:pkg"])'),
    "dist_info": ("BUILD.bazel", 'filegroup(name = "a", srcs = ["@pypi//b:dist_info"])'),
    "documented": ("tools/a.py", '"""Lies in external/foo, as @@x is."""'),
    "another word": ("tools/a.py", 'X = "notexternal/x"'),
    "child with a path": ("tools/a.py", "subprocess.run([sys.executable, 'a.py'], env=child_environment())"),
    "child with options passed on": ("tools/a.py", "subprocess.run([sys.executable, 'a.py'], **options)"),
    "child that sets its path": (
        "tools/a.py",
        "def a():\n    code = f'import sys; sys.path[:] = {sys.path!r}'\n    subprocess.run([sys.executable, '-c', code])",
    ),
    "start scripts are skipped": (
        "tools/a.py",
        "X = [p for p in y.rglob('*.py') if not p.name.endswith('_stage2_bootstrap.py')]",
    ),
    "a test searches": ("tools/a_test.py", "X = tmp_path.rglob('*.py')"),
    "other files are searched": ("tools/a.py", "X = y.rglob('*.yaml')"),
    "another child": ("tools/a.py", "subprocess.run(['git'])"),
    "Rlocation": ("tools/a.py", "runfiles.Create().Rlocation('a')"),
    "version": ("tools/a.py", "importlib.metadata.version('pydantic')"),
    "root name": ("slipway/a.py", ""),
    "package named as a module": ("tools/json/a.py", ""),
    "comment on an option": (".ci/run", "# never --enable_workspace\n"),
    "overlay": (OVERLAY + "a.bzl", 'native.py_library(name = "a")'),
}

# case: file, text, line, rule, part of the text
FAILING = {
    "no load": (
        "BUILD.bazel",
        'py_test(name = "a")',
        1,
        "native-rule",
        'load("@rules_python//python:defs.bzl", "py_test")',
    ),
    "native": (
        "x/a.bzl",
        "def a():\n    native.py_binary(name = 'a')",
        2,
        "native-rule",
        "native.py_binary is not loaded",
    ),
    "attribute": (
        "BUILD.bazel",
        LOAD + 'py_binary(name = "a", main_module = "a.b")',
        2,
        "real-only-attribute",
        "main_module",
    ),
    "precompile": (
        "BUILD.bazel",
        LOAD + 'py_library(name = "a", precompile = "enabled")',
        2,
        "real-only-attribute",
        "precompile",
    ),
    "version": (
        "BUILD.bazel",
        LOAD + 'py_test(name = "a", python_version = "3.12")',
        2,
        "real-only-attribute",
        '"PY3"',
    ),
    "file": (
        "a.bzl",
        'load("@rules_python//python:pip.bzl", "whl_filegroup")',
        1,
        "real-only-label",
        "pip.bzl is not the same",
    ),
    "symbol": (
        "a.bzl",
        'load("@rules_python//python:defs.bzl", "current_py_toolchain")',
        1,
        "real-only-label",
        "current_py_toolchain",
    ),
    "label": (
        "BUILD.bazel",
        'x(a = "@rules_python//python/bin:python")',
        1,
        "real-only-label",
        "python/bin:python does not exist",
    ),
    "target": (
        "BUILD.bazel",
        'x(a = "@rules_python//python:none")',
        1,
        "real-only-label",
        "python:none does not exist",
    ),
    "wheel file": ("BUILD.bazel", 'x(a = ["@pypi//b:whl"])', 1, "real-only-label", "use :pkg or :dist_info"),
    "wheel data": ("BUILD.bazel", 'x(a = ["@pypi//b:data"])', 1, "real-only-label", "use :pkg or :dist_info"),
    "external in a rule": ("a.bzl", 'X = "external/foo/bar"', 1, "hard-coded-repository", "use a label"),
    "external in Python": (
        "tools/a.py",
        "X = f'{root}/external/foo'",
        1,
        "hard-coded-repository",
        "$(rlocationpath)",
    ),
    "canonical label": (
        "BUILD.bazel",
        'x(a = "@@bazel_skylib//lib")',
        1,
        "hard-coded-repository",
        "use a label",
    ),
    "tilde": (
        "tools/a.py",
        "X = 'rules_python~~pip~slipway_pypi_b'",
        1,
        "hard-coded-repository",
        "Bazel version",
    ),
    "plus": (
        "tools/a.py",
        "X = 'rules_python++pip+slipway_pypi_b'",
        1,
        "hard-coded-repository",
        "Bazel version",
    ),
    "files": ("tools/a.py", "importlib.metadata.files('b')", 1, "real-only-python", "importlib.resources"),
    "root": ("tools/a.py", "runfiles.root()", 1, "real-only-python", "use Rlocation()"),
    "child": (
        "tools/a.py",
        "\nsubprocess.run([sys.executable, '-m', 'x'])",
        2,
        "child-without-path",
        "PYTHONPATH",
    ),
    "search": ("tools/a.py", "X = y.z.rglob('*.py')", 1, "start-script-taken", "skip it"),
    "search by pattern": ("tools/a.py", "X = y.glob('**/*.py')", 1, "start-script-taken", "skip it"),
    "root package": ("email/a.py", "", 1, "root-name", "'email' is a module of the standard library"),
    "root module": ("queue.py", "", 1, "root-name", "'queue' is a module of the standard library"),
    "rules_python flag": (
        ".ci/run",
        "bazel test --@rules_python//python:x=y\n",
        1,
        "option",
        "is an error air-gapped",
    ),
    "workspace mode": ("a.sh", "bazel build --enable_workspace\n", 1, "option", "MODULE.bazel is the source"),
    "no bzlmod": ("x.bazelrc", "build --noenable_bzlmod\n", 1, "option", "MODULE.bazel is the source"),
    "options left out": (
        ".bazelrc",
        "\n".join(REQUIRED_OPTIONS[1:]),
        1,
        "option",
        f"'{REQUIRED_OPTIONS[0]}' is missing",
    ),
    "workspace file": ("WORKSPACE", '# a\nworkspace(name = "x")\n', 2, "option", "WORKSPACE is a stub"),
    "parse argument": (
        "MODULE.bazel",
        MODULE.replace('"//:lock.txt",', '"//:lock.txt", whl_modifications = {},'),
        6,
        "module-file",
        "takes no whl_modifications",
    ),
    "parse argument left out": (
        "MODULE.bazel",
        MODULE.replace('    python_version = "3.12",\n', ""),
        6,
        "module-file",
        "needs python_version",
    ),
    "hub name": (
        "MODULE.bazel",
        MODULE.replace('hub_name = "slipway_pypi"', 'hub_name = "pypi"'),
        6,
        "module-file",
        "reserves pypi",
    ),
    "use_repo": (
        "MODULE.bazel",
        MODULE.replace("pypi = ", ""),
        11,
        "module-file",
        'use_repo(pip, pypi = "slipway_pypi")',
    ),
    "no defaults": (
        "MODULE.bazel",
        MODULE.replace('python.defaults(python_version = "3.12")\n', ""),
        1,
        "module-file",
        "python.defaults is missing",
    ),
    "another version": (
        "MODULE.bazel",
        MODULE.replace("2.3.2", "1.7.0"),
        1,
        "module-file",
        "2.3.2 is the version",
    ),
}


def test_good_files_pass() -> None:
    assert find_all(GOOD) == []


@pytest.mark.parametrize("case", PASSING)
def test_passes(case: str) -> None:
    file, text = PASSING[case]
    assert find_all({**GOOD, file: text}) == []


@pytest.mark.parametrize("case", FAILING)
def test_refuses(case: str) -> None:
    file, text, line, rule, part = FAILING[case]
    (finding,) = find_all({**GOOD, file: text})
    assert (finding.line, finding.rule) == (line, rule)
    assert part in finding.text


def test_a_finding_reads_as_a_place_and_a_repair() -> None:
    assert str(Finding("a/BUILD.bazel", 3, "native-rule", "x is not loaded; load it")) == (
        "a/BUILD.bazel:3: [native-rule] x is not loaded; load it"
    )


def test_the_checkout_works_in_both_worlds() -> None:
    files = workspace_files(Path.cwd())
    assert {"MODULE.bazel", ".bazelrc", "WORKSPACE", "tools/bazel", *EXEMPT} <= files.keys()
    assert "\n".join(map(str, find_all(files))) == ""


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
