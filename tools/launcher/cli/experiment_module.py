"""Loading an experiment's source, and turning what goes wrong in it into one clear sentence."""

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.cli.experiment_boundary import boundary_error_behind
from tools.launcher.preflight.wording import shown
from tools.launcher.rl.build_options import BuildOptionError, RlBuildMain
from tools.launcher.rl.inputs import UndeclaredInput


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
        raise ExperimentError(f"{place}: {error.msg}. Correct the Python source") from None
    except ValidationError as error:
        place = _place(error, main_file)
        problems = "\n".join(
            f"    {error.title}.{'.'.join(str(part) for part in item['loc']) or '(value)'}: {item['msg']}"
            + ("" if item["type"] in ("missing", "value_error") else f", got {_seen(item['input'])}")
            for item in error.errors(include_url=False)
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
    except ModuleNotFoundError as error:
        raise ExperimentError(
            f"{_place(error, main_file)}: {error.msg}. List the file in srcs and import it by its path "
            "from the workspace root, such as experiments.team.recipes"
        ) from None
    except Exception as error:
        if refusal := boundary_error_behind(error):
            raise ExperimentError(f"{_place(error, main_file)}: {refusal}") from None
        message = f": {error}" if str(error) else ""
        raise ExperimentError(f"{_place(error, main_file)}: {type(error).__name__}{message}") from None


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
