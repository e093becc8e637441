"""Which programs do the work of a step: the MarinSkyRL runtime, or the rehearsal in its place."""

from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tools.launcher.coordinator.graph_file import GraphStep

REHEARSAL_MODULE = "tools.launcher.rehearsal"


class NoMaker(Exception):
    """This runtime cannot make a step. The message names the step and the fix."""


class Runtime(BaseModel):
    """The commands of a runtime.

    Attributes:
        name: `rehearsal` or `marinskyrl`.
        launch: argv that launches a document file.
        import_artifact: argv that imports a model or dataset step, given the tokenizer (URI, revision).
        evaluate: argv that makes an evaluate step from an export URI.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")

    name: str
    launch: Callable[[Path], tuple[str, ...]]
    import_artifact: Callable[[GraphStep, str, str], tuple[str, ...]]
    evaluate: Callable[[GraphStep, str], tuple[str, ...]]


def rehearsal_runtime(prefix: tuple[str, ...], object_root_url: str) -> Runtime:
    """Return the stand-in's commands.

    Args:
        prefix: argv that starts the rehearsal, such as (python, "-m", REHEARSAL_MODULE).
        object_root_url: `file:///` URL of the folder which stands for all buckets.
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
        return (*prefix, "iris", "launch", root, "--config", str(document))

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

    return Runtime(name="rehearsal", launch=launch, import_artifact=import_artifact, evaluate=evaluate)


def marinskyrl_runtime() -> Runtime:
    """Return the commands of the installed MarinSkyRL launcher. It launches; inputs must exist already."""

    def launch(document: Path) -> tuple[str, ...]:
        return ("marinskyrl", "iris", "launch", "--config", str(document))

    def refuse(step: GraphStep, *_: str) -> tuple[str, ...]:
        raise NoMaker(
            f"step {step.address} has no finished artifact at {step.output_path} and the MarinSkyRL "
            f"launcher makes no {step.kind}. Import it first, or adopt an existing artifact"
        )

    return Runtime(name="marinskyrl", launch=launch, import_artifact=refuse, evaluate=refuse)
