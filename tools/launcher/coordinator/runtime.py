"""Which programs do the work of a step: the MarinSkyRL runtime, or the rehearsal in its place."""

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, SecretStr

from tools.launcher.coordinator.graph_file import GraphStep
from tools.launcher.graph.step import STAGE_OF_KIND

REHEARSAL_MODULE = "tools.launcher.rehearsal"

MARINSKYRL_REPOSITORY = "https://github.com/marin-community/MarinSkyRL.git"
MARINSKYRL_PYTHON = "3.12"  # `requires-python = "==3.12.*"` of its pyproject.toml

MADE_BY: Final[dict[str, frozenset[str]]] = {
    "rehearsal": frozenset(STAGE_OF_KIND),
    "marinskyrl": frozenset({"skyrl"}),
}
"""Runtime -> kinds of steps that it makes. A launch reads this; a coordinator meets what the runtime refuses."""

_COMMIT = re.compile(r"[0-9a-f]{40}")


class NoMaker(ValueError):
    """This runtime cannot make a step. The message names the step and the fix."""


class Runtime(BaseModel):
    """The commands of a runtime.

    Attributes:
        launch: argv that launches a document file.
        adopts: the launcher, started again, follows the child that it submitted before. Without it the
            launcher may be started only while there is no child.
        withheld: variables of the coordinator's environment that its launcher must not see.
        takes_values: the launcher finds credentials in its environment. Without it, it is told their names and
            reads the files that Iris delivered itself.
        import_artifact: argv that imports a model or dataset step, given the tokenizer (URI, revision).
        evaluate: argv that makes an evaluate step from an export URI.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")

    launch: Callable[[Path], tuple[str, ...]]
    adopts: bool
    withheld: tuple[str, ...] = ()
    takes_values: bool = False
    import_artifact: Callable[[GraphStep, str, str], tuple[str, ...]]
    evaluate: Callable[[GraphStep, str], tuple[str, ...]]


def rehearsal_runtime(
    prefix: tuple[str, ...], object_root_url: str, *, credentials: tuple[str, ...] = ()
) -> Runtime:
    """Return the stand-in's commands.

    Args:
        prefix: argv that starts the rehearsal, such as (python, "-m", REHEARSAL_MODULE).
        object_root_url: `file:///` URL of the folder which stands for all buckets.
        credentials: names of what Iris delivered for the run.
    """
    root = f"--object-root={object_root_url}"

    def step_flags(step: GraphStep) -> tuple[str, ...]:
        return (
            root,
            f"--name={step.name}",
            f"--version={step.version}",
            f"--fingerprint={step.fingerprint}",
            f"--output={step.output_path}",
        )

    def launch(document: Path) -> tuple[str, ...]:
        names = (f"--credential={name}" for name in credentials)
        return (*prefix, "iris", "launch", root, "--config", str(document), *names)

    def import_artifact(step: GraphStep, tokenizer_uri: str, tokenizer_revision: str) -> tuple[str, ...]:
        command = (*prefix, "import", *step_flags(step), f"--kind={step.kind}")
        if step.kind == "hf_model":
            relative = step.config.get("relative_path") or ""
            return (
                *command,
                f"--card={step.config.get('model') or step.name}",
                f"--relative-path={relative}",
                f"--tokenizer-uri={tokenizer_uri}",
                f"--tokenizer-revision={tokenizer_revision}",
            )
        paths = (f"--relative-path={path}" for path in step.config.get("relative_paths") or [])
        return (*command, f"--env-class={step.config.get('env_class') or 'gsm8k'}", *paths)

    def evaluate(step: GraphStep, export_uri: str) -> tuple[str, ...]:
        config = step.config
        try:
            flags = (
                f"--env-class={config['env_class']}",
                f"--episodes={config['episodes']}",
                f"--seed={config['seed']}",
            )
        except KeyError as error:
            raise NoMaker(
                f"step {step.address}: its config lacks {error}. Build the experiment again"
            ) from None
        return (*prefix, "evaluate", *step_flags(step), f"--export={export_uri}", *flags)

    return Runtime(
        launch=launch,
        adopts=True,
        import_artifact=import_artifact,
        evaluate=evaluate,
    )


def marinskyrl_argv(commit: str, document: Path) -> tuple[str, ...]:
    """Return the command that launches a document with the pinned MarinSkyRL launcher.

    An environment of its own is made for it from the repository at the commit, as Marin does
    (marin/rl/skyrl.py, `_launcher_command`): its dependencies are not ours. The launcher compares the commit
    it was installed from with `runtime.launcher_commit` and refuses another.

    Args:
        commit: `runtime.launcher_commit`, 40 hex digits.
        document: the attempt document, a local file.

    Raises:
        NoMaker: `commit` names no commit; a branch would not be pinned.
    """
    if not _COMMIT.fullmatch(commit):
        raise NoMaker(
            f"runtime.launcher_commit is {commit!r}. It must be a commit of 40 lower-case hex digits: pin the "
            "runtime and build the experiment again"
        )
    return (
        "uv",
        "run",
        "--isolated",
        "--no-project",
        "--prerelease=allow",
        "--python",
        MARINSKYRL_PYTHON,
        "--with",
        f"marinskyrl @ git+{MARINSKYRL_REPOSITORY}@{commit}",
        "marinskyrl",
        "iris",
        "launch",
        "--config",
        str(document),
    )


def marinskyrl_runtime(commit: str) -> Runtime:
    """Return the commands of the MarinSkyRL launcher at a commit. It launches; inputs must exist already.

    It cannot follow a child that exists (cloud/iris/iris_backend.py@019c9759, `launch`): it submits under the
    document's job name with Iris's default policy, which refuses an unfinished job of that name and replaces
    a finished one.
    """

    def refuse(step: GraphStep, *_: str) -> tuple[str, ...]:
        raise NoMaker(
            f"step {step.address} has no finished artifact at {step.output_path} and the MarinSkyRL "
            f"launcher makes no {step.kind}. Import it first, or adopt an existing artifact"
        )

    return Runtime(
        launch=functools.partial(marinskyrl_argv, commit),
        adopts=False,
        takes_values=True,
        # Ours name packages for another Python environment; its own must not find them.
        withheld=("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV"),
        import_artifact=refuse,
        evaluate=refuse,
    )


def launcher_environment(
    runtime: Runtime, environ: Mapping[str, str], credentials: Mapping[str, SecretStr]
) -> dict[str, str]:
    """Return the environment of the runtime's launcher: the coordinator's, and the values it takes there.

    No other program gets the values. What the MarinSkyRL launcher does with them is its own: it hands some
    on to the tasks of its job (contract: runtime-facts, environment variables).
    """
    kept = {name: value for name, value in environ.items() if name not in runtime.withheld}
    if not runtime.takes_values:
        return kept
    return kept | {name: value.get_secret_value() for name, value in credentials.items()}
