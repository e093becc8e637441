"""A copy of the running program's Python that lives as long as the daemon needs it.

Under Bazel everything a program imports lies in trees that the next build, `bazel clean` or another
output base takes away. The daemon, and every task it starts, must not stand on those: the wheels, the
launcher's own files and, where the toolchain is Bazel's, the interpreter are laid into the state folder
as hard links, which cost no space and outlive the names they were made from. Where the file system
can't link, they are copied.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.launcher.documents.canonical import canonical_json, digest_of, sha256_hex
from tools.launcher.documents.files import write_atomically

_LAUNCHER_PARTS = ("tools/launcher/documents", "tools/launcher/iris")
_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class RuntimePlan:
    """What a daemon started now would run.

    Attributes:
        wheel_folders: Folders that hold installed distributions, in the order of sys.path.
        copied: They are Bazel's and have to be copied; else they are used where they are.
        python: The interpreter.
        python_prefix: Its installation, if that is Bazel's and has to be copied.
        launcher_root: Folder that holds this program's `tools` package.
        launcher_files: Files of the launcher that the daemon needs, relative to it.
        digest: Names all of it.
    """

    wheel_folders: tuple[Path, ...]
    copied: bool
    python: Path
    python_prefix: Path | None
    launcher_root: Path
    launcher_files: tuple[str, ...]
    digest: str


@dataclass(frozen=True)
class Runtime:
    """A runtime ready to start: the interpreter, its PYTHONPATH, and where the launcher lies.

    The launcher is kept out of `python_path`: tasks bring their own and must not meet this one.
    """

    python: Path
    python_path: tuple[Path, ...]
    launcher: Path


def plan_runtime(
    sys_path: Iterable[str] | None = None, executable: str | None = None, prefix: str | None = None
) -> RuntimePlan:
    """Find out what this process runs on.

    Args:
        sys_path: Import path; of this process if not given.
        executable: Interpreter; of this process if not given.
        prefix: Installation of that interpreter; of this process if not given.
    """
    executable = sys.executable if executable is None else executable
    prefix = sys.base_prefix if prefix is None else prefix
    folders = [
        Path(entry)
        for entry in (sys.path if sys_path is None else sys_path)
        if entry and _holds_wheels(entry)
    ]
    # A program of Bazel's declares all it imports; what else is on its path is the host's.
    of_bazel = tuple(folder for folder in folders if in_bazel_tree(folder))
    wheel_folders = of_bazel or tuple(folders)

    python = Path(executable)
    python_prefix = None
    # Of a virtual environment the unresolved name is the one that counts, if it is where the wheels are.
    # With Bazel's wheels it gives nothing, and may lie in a cache that a new Bazel replaces.
    if of_bazel or in_bazel_tree(python):
        python = Path(os.path.realpath(python))
        real_prefix = Path(os.path.realpath(prefix))
        if in_bazel_tree(python) and python.is_relative_to(real_prefix):
            python_prefix = real_prefix

    launcher_root = Path(__file__).parents[4]
    launcher_files = tuple(_launcher_files(launcher_root))
    digest = digest_of(
        {
            "python": sys.version,
            "interpreter": "copied" if python_prefix else str(python),
            "wheels": sorted({info for folder in wheel_folders for info in _distributions(folder)}),
            # Folders used in place are part of what runs; copies are not.
            "folders": [] if of_bazel else [str(folder) for folder in wheel_folders],
            "launcher": {name: sha256_hex((launcher_root / name).read_bytes()) for name in launcher_files},
        }
    )
    return RuntimePlan(
        wheel_folders=wheel_folders,
        copied=bool(of_bazel),
        python=python,
        python_prefix=python_prefix,
        launcher_root=launcher_root,
        launcher_files=launcher_files,
        digest=digest,
    )


def lay_down(plan: RuntimePlan, runtimes: Path, *, on_progress: Callable[[str], None]) -> Runtime:
    """Make the runtime of `plan` below `runtimes`, if it is not there. One caller at a time.

    A part made by a call that was killed is swept away.

    Args:
        plan: What to lay down.
        runtimes: Folder of all runtimes.
        on_progress: Told before anything slow.
    """
    target = runtimes / plan.digest[:16]
    if not (target / _MANIFEST).exists():
        unfinished = runtimes / f"{target.name}.part"
        for leftover in (unfinished, target):
            shutil.rmtree(leftover, ignore_errors=True)
        unfinished.mkdir(parents=True, mode=0o700)
        if plan.copied:
            on_progress("Keeping a copy of this build for the embedded Iris (once for each build) ...")
            for folder in plan.wheel_folders:
                graft(folder, unfinished / "wheels" / "lib" / "site-packages")
        if plan.python_prefix is not None:
            graft(plan.python_prefix, unfinished / "python")
        for name in plan.launcher_files:
            copy = unfinished / "launcher" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(plan.launcher_root / name, copy)
        write_atomically(unfinished / _MANIFEST, canonical_json({"digest": plan.digest}) + b"\n")
        unfinished.rename(target)
    python = plan.python
    if plan.python_prefix is not None:
        python = target / "python" / python.relative_to(plan.python_prefix)
    return Runtime(
        python=python,
        python_path=(target / "wheels" / "lib" / "site-packages",) if plan.copied else plan.wheel_folders,
        launcher=target / "launcher",
    )


def drop_other_runtimes(runtimes: Path, digest: str) -> None:
    """Delete all runtimes but that of `digest`. No daemon may be running one of them."""
    for folder in runtimes.iterdir() if runtimes.exists() else ():
        if folder.name != digest[:16]:
            shutil.rmtree(folder, ignore_errors=True)


def in_bazel_tree(path: Path) -> bool:
    """True if `path`, or what it points to, lies in a runfiles tree or an output base of Bazel."""
    for candidate in {path.absolute(), Path(os.path.realpath(path))}:
        if any(part.endswith(".runfiles") for part in candidate.parts):
            return True
        # Bazel puts this file into each of its output bases.
        if any((parent / "DO_NOT_BUILD_HERE").exists() for parent in candidate.parents):
            return True
        if any(
            (parent / "execroot").is_dir() and (parent / "external").is_dir() for parent in candidate.parents
        ):
            return True
    return False


def graft(source: Path, target: Path) -> None:
    """Lay the files of `source` into `target` as hard links, or copies where linking fails.

    Symbolic links are followed, so that nothing points back into Bazel's trees. What is there already
    stays: the first folder on the import path wins.
    """
    target.mkdir(parents=True, exist_ok=True)
    with os.scandir(source) as entries:
        for entry in sorted(entries, key=lambda item: item.name):
            name = target / entry.name
            if entry.is_dir():
                graft(Path(entry.path), name)
            # "x.pyc.140234" is bytecode that another program of this interpreter is writing.
            elif entry.is_file() and ".pyc." not in entry.name and not name.exists():
                real = os.path.realpath(entry.path)
                try:
                    os.link(real, name)
                except OSError:
                    shutil.copy2(real, name)


def _holds_wheels(entry: str) -> bool:
    return next(_distributions(Path(entry)), None) is not None


def _distributions(folder: Path) -> Iterator[str]:
    """Names of the .dist-info folders ("pydantic-2.12.0.dist-info"): distribution and version."""
    try:
        with os.scandir(folder) as entries:
            yield from [entry.name for entry in entries if entry.name.endswith(".dist-info")]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return


def _launcher_files(root: Path) -> Iterator[str]:
    packages = [Path("tools/__init__.py"), Path("tools/launcher/__init__.py")]
    for part in _LAUNCHER_PARTS:
        packages += [path.relative_to(root) for path in sorted((root / part).rglob("*.py"))]
    for path in packages:
        # rules_python lays a start script and a virtual environment beside the sources of a program.
        generated = path.stem.endswith("_stage2_bootstrap") or any(".venv" in part for part in path.parts)
        if not generated and not path.stem.endswith("_test"):
            yield path.as_posix()
