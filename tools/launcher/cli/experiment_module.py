"""Loading an experiment's source, and turning what goes wrong in it into one clear sentence."""

import difflib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tools.launcher import rl
from tools.launcher.catalog.cards import MissingFact
from tools.launcher.cli.experiment_boundary import INPUT_RULE, boundary_error_behind
from tools.launcher.documents.field_problems import field_problem
from tools.launcher.preflight.wording import shown
from tools.launcher.rl.build_options import BuildOptionError, RlBuildMain
from tools.launcher.rl.inputs import UndeclaredInput

_NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?")


class ExperimentError(Exception):
    """The experiment's own source or declaration is wrong. The message says where and how to mend it."""


def load_experiment(main_file: Path) -> RlBuildMain:
    """Execute an experiment's file and return its decorated `main`.

    The module gets a name of its own on every call and is not kept in `sys.modules`.

    Raises:
        ExperimentError: no such file, an error while it is executed, or no `main` decorated
            with `rl_build_options`.
    """

    def execute() -> RlBuildMain:
        name = "_experiment_" + "_".join(main_file.with_suffix("").parts)
        if not main_file.is_file():
            raise ExperimentError(f"{main_file} does not exist. Set main to the experiment's .py file")
        spec = importlib.util.spec_from_file_location(name, main_file)
        if spec is None or spec.loader is None:
            raise ExperimentError(f"{main_file} is no Python file. Set main to the experiment's .py file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # type hints of the module are looked up there
        try:
            spec.loader.exec_module(module)
        finally:
            del sys.modules[name]
        main = getattr(module, "main", None)
        if not isinstance(main, RlBuildMain):
            raise ExperimentError(
                f"{main_file} has no main() decorated with @rl_build_options. Add the decorator"
            )
        return main

    return explained(execute, main_file)


def explained[Result](action: Callable[[], Result], main_file: Path) -> Result:
    """Call `action`, which runs the experiment's code.

    Raises:
        ExperimentError: for any error of that code: file and line of the experiment, and what
            it was; a specification with several ill-typed fields names all of them.
    """
    try:
        return action()
    except (ExperimentError, BuildOptionError):
        raise
    except SyntaxError as error:
        place = f"{_from_root(error.filename)}:{error.lineno}" if error.filename else str(main_file)
        said = str(error.msg).removesuffix("?")  # `invalid syntax. Perhaps you forgot a comma?`
        raise ExperimentError(f"{place}: {said}. Correct the Python source") from None
    except ValidationError as error:
        place = _place(error, main_file)
        problems = "\n".join(
            f"    {_field_sentence(item, error.title)}" for item in error.errors(include_url=False)
        )
        raise ExperimentError(f"{place}: {error.title} is not well-typed:\n{problems}") from None
    except (UndeclaredInput, MissingFact) as error:
        raise ExperimentError(f"{_place(error, main_file)}: {error.args[0]}") from None
    except SystemExit as error:
        # Else a build would end with the experiment's own exit status, 0 among them, and no outputs.
        raise ExperimentError(
            f"{_place(error, main_file)}: the experiment ends the process with SystemExit({error.code!r}). "
            "Return the terminal step, or raise an ordinary error"
        ) from None
    except Exception as error:
        raise ExperimentError(f"{_place(error, main_file)}: {_sentence(error)}") from None


def _field_sentence(item: ErrorDetails, title: str) -> str:
    path = ".".join(str(part) for part in item["loc"])
    # A class of the authoring API by its name; of others, and below the top, the fields are not known.
    fields = getattr(getattr(rl, title, None), "model_fields", {}) if len(item["loc"]) == 1 else {}
    problem = field_problem(item["type"], item["msg"], _seen(item["input"]), path, list(fields))
    return f"{title}.{path or '(value)'}: {problem}{_as_written(item['type'], item['input'])}"


def _as_written(kind: str, value: object) -> str:
    """How the value is written in Python, where what was meant is plain."""
    if kind == "tuple_type":
        return (
            ". Write (a, b) in the place of [a, b]; a tuple of one has a comma: (a,)"
            if isinstance(value, list)
            else ". A tuple of one has a comma: (a,)"
        )
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        return f". Write {shown(int(value))}"
    if kind in ("int_type", "float_type") and isinstance(value, str) and _NUMBER.fullmatch(value):
        return f". Write {value} without quotes"
    return ""


def _sentence(error: Exception) -> str:
    """Say what an error of the experiment's code is, and what to do where that can be known."""
    if refusal := boundary_error_behind(error):
        return str(refusal)
    if isinstance(error, ModuleNotFoundError):
        return _absent_module(error)
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"the experiment reads {error.filename!r}, which is not there. {INPUT_RULE}"
    if isinstance(error, KeyError) and _raised_by_environ(error):
        return (
            f"the experiment reads the environment variable {error.args[0]!r}. A build action has none of yours. "
            "Write its value into the experiment or an option"
        )
    if isinstance(error, ImportError):
        if "relative import" in str(error):
            return f"{error}. {_OWN_FILE}"
        # Where the module lies is no help, and another place on each machine.
        return f"ImportError: {str(error).removesuffix(f' ({error.path})')}{_near_name(error)}"
    message = f": {error}" if str(error) else ""
    return f"{type(error).__name__}{message}{_near_name(error)}"


_OWN_FILE = "List the file in srcs and import it by its path from the workspace root, such as experiments.team.recipes"


def _absent_module(error: ModuleNotFoundError) -> str:
    if error.name is not None and error.name.partition(".")[0] == "marin":
        return f"{error.msg}. Import its types from tools.launcher.rl; docs/from-marin.md says what differs"
    return (
        f"{error.msg}. {_OWN_FILE}. Packages from elsewhere are not there: "
        "an experiment has Python's own library and tools.launcher.rl"
    )


def _raised_by_environ(error: KeyError) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return (
        bool(frames)
        and frames[-1].name == "__getitem__"
        and frames[-1].filename in ("<frozen os>", os.__file__)
    )


def _near_name(error: Exception) -> str:
    """The end `. Did you mean: 'x'?` that Python itself adds to errors about names."""
    if isinstance(error, ImportError):
        # Python looks into the first package of a dotted name only.
        names = dir(sys.modules.get(error.name or ""))
        near = difflib.get_close_matches(error.name_from or "", names, n=1)
        return f". Did you mean: {near[0]!r}?" if near else ""
    if not isinstance(error, NameError | AttributeError):
        return ""
    said = "".join(traceback.TracebackException.from_exception(error).format_exception_only())
    _, mark, name = said.strip().rpartition(". Did you mean: ")
    return f"{mark}{name}" if mark else ""


def _seen(value: object) -> str:
    """A value as Python writes it, but short: containers by their kind, text cut."""
    return repr(value) if value is None or isinstance(value, bool) else shown(value)


def _place(error: BaseException, main_file: Path) -> str:
    """Innermost line that is the experiment's own: of main or of a file beside it."""
    main = _from_root(str(main_file))
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = _from_root(frame.filename)
        if path == main or (main.parent != Path() and path.is_relative_to(main.parent)):
            return f"{path}:{frame.lineno}"
    return str(main_file)


def _from_root(filename: str) -> Path:
    """The path as the target names it; Python makes the names of modules absolute."""
    path = Path(filename)
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
