"""The part of the launch document which a rehearsal obeys, as typed data.

Fields which are not here are carried along unread (contract/launch-document.md has them all):
engines, packing, offloading and the like mean nothing to a policy of a hundred numbers. What is
here is obeyed exactly or refused; what is replaced by a stand-in is said in `notices`.

Defaults are those of the trainer's base configuration (contract/skyrl-keys.tsv).
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.launcher.documents.canonical import digest_of
from tools.launcher.documents.strict_yaml import DocumentError, load_yaml
from tools.launcher.rehearsal.problems import RehearsalProblem

POSITIVE = Field(gt=0)
REHEARSABLE_ESTIMATORS = ("grpo", "rloo")
# For an answer of one token the sequence ratio of GSPO is the token ratio of the regular loss.
REHEARSABLE_LOSSES = ("regular", "gspo")


class DocumentProblem(RehearsalProblem):
    """The document cannot be rehearsed. The message names each field, its value and the rule."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class RunSection(_Section):
    """Who runs: `seed` seeds everything which is drawn."""

    id: Annotated[str, Field(min_length=1)]
    attempt_id: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
    seed: int = 42
    mode: Literal["train"] = "train"
    submission: Literal["prepare", "detach", "wait"] = "wait"
    export_hf: bool = True


class RuntimeSection(_Section):
    """Which runtime the plan is for. The stand-in answers with the commit, it does not run it."""

    launcher_commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    profile: Annotated[str, Field(min_length=1)]


class Allocation(_Section):
    """The gang: `num_nodes` tasks with `gpus_per_node` devices of `gpu_variant` each."""

    num_nodes: Annotated[int, POSITIVE]
    gpus_per_node: Annotated[int, POSITIVE]
    gpu_variant: Annotated[str, Field(min_length=1)]


class IrisSection(_Section):
    """The child job. `timeout` in seconds, 0 for none."""

    job_name: Annotated[str, Field(min_length=1, pattern=r"^[^/\s]+$")]
    allocation: Allocation
    max_retries: Annotated[int, Field(ge=0)] = 3
    timeout: Annotated[int, Field(ge=0)] = 0


class IngressSection(_Section):
    """How sandboxes would reach the engines; a rehearsal has neither."""

    mode: Literal["direct", "controller"] = "direct"


class RaySection(_Section):
    """Where and how long the tasks look for each other (seconds)."""

    rendezvous_dir: Annotated[str, Field(min_length=1)]
    cluster_join_timeout: Annotated[int, POSITIVE]


class ArtifactsSection(_Section):
    """Where everything is left (URIs)."""

    checkpoint_root: Annotated[str, Field(min_length=1)]
    export_root: Annotated[str, Field(min_length=1)]
    attempts_root: Annotated[str, Field(min_length=1)]
    resolved_config_uri: Annotated[str, Field(min_length=1)]
    terminal_manifest_uri: Annotated[str, Field(min_length=1)]
    resume_checkpoint_count: Annotated[int, POSITIVE] = 2


class ModelInput(_Section):
    """The starting weights and the path through which every task must load them."""

    uri: Annotated[str, Field(min_length=1)]
    identity: Annotated[str, Field(pattern=r"^[^@]+@[^:]+:[0-9a-f]{8,64}$")]
    local_path: Annotated[str, Field(pattern=r"^/")]
    tokenizer_uri: Annotated[str, Field(min_length=1)]
    tokenizer_revision: Annotated[str, Field(min_length=1)]


class Selection(_Section):
    """Which tasks of a TaskTrove collection are used; toy rows have neither sources, tags nor modes."""

    limit: Annotated[int, POSITIVE] | None = None
    seed: int = 0


class DataInput(_Section):
    """One data file to stage. Of `tasktrove_parquet`, `selection` says how many of its rows are used."""

    kind: Literal["directory", "tasktrove_parquet"]
    uri: Annotated[str, Field(min_length=1)]
    identity: Annotated[str, Field(pattern=r"^[^@]+@[^:]+:[0-9a-f]{8,64}$")]
    local_path: Annotated[str, Field(pattern=r"^/")]
    relative_path: Annotated[str, Field(min_length=1)]
    selection: Selection | None = None


class InputsSection(_Section):
    """Model and data. A run without training data has nothing to rehearse."""

    model: ModelInput
    train_data: Annotated[list[DataInput], Field(min_length=1)]
    validation_data: list[DataInput] = []


class Algorithm(_Section):
    """The objective. Advantages are relative to the group of answers to one prompt."""

    advantage_estimator: str = "grpo"
    policy_loss_type: str = "regular"
    grpo_norm_by_std: bool = True
    eps_clip_low: Annotated[float, Field(ge=0)] = 0.2
    eps_clip_high: Annotated[float, Field(ge=0)] = 0.2
    use_kl_loss: bool = True
    kl_loss_coef: Annotated[float, Field(ge=0)] = 0.001


class Placement(_Section):
    """GPUs of one policy node; a task stands for a node."""

    policy_num_gpus_per_node: Annotated[int, POSITIVE]


class Trainer(_Section):
    """Batches (prompts; the micro batch in rows per GPU), schedule and resumption."""

    algorithm: Algorithm = Algorithm()
    placement: Placement
    epochs: Annotated[int, POSITIVE] = 1
    max_steps: Annotated[int, POSITIVE] | None = None
    ckpt_interval: int = 5
    resume_mode: Literal["none", "latest"] = "latest"
    update_epochs_per_batch: Annotated[int, POSITIVE] = 1
    train_batch_size: Annotated[int, POSITIVE] = 1024
    policy_mini_batch_size: Annotated[int, POSITIVE] = 256
    micro_train_batch_size_per_gpu: Annotated[int, POSITIVE] = 1


class SamplingParams(_Section):
    """How answers are drawn. At temperature 0 all answers of a group are equal: nothing is learned."""

    temperature: Annotated[float, POSITIVE] = 1.0


class Generator(_Section):
    """How many answers one prompt gets."""

    sampling_params: SamplingParams = SamplingParams()
    n_samples_per_prompt: Annotated[int, Field(ge=2)] = 5


class Environment(_Section):
    """Which task the policy is rewarded for."""

    env_class: Annotated[str, Field(min_length=1)] = "gsm8k"


class SkyRLSection(_Section):
    """The recipe, as far as a rehearsal obeys it."""

    entrypoint: str | None = None
    environment: Environment = Environment()
    terminal_bench: dict[str, Any] | None = None
    trainer: Trainer
    generator: Generator = Generator()


class RehearsalDocument(_Section):
    """A launch document which can be rehearsed."""

    schema_version: Literal[1]
    run: RunSection
    runtime: RuntimeSection
    iris: IrisSection
    ingress: IngressSection = IngressSection()
    ray: RaySection
    artifacts: ArtifactsSection
    inputs: InputsSection
    skyrl: SkyRLSection

    @property
    def attempt_uri(self) -> str:
        """Folder of this attempt's files."""
        return f"{self.artifacts.attempts_root}/{self.run.attempt_id}"

    @property
    def attempt_record_uri(self) -> str:
        """The record of how this attempt ended."""
        return f"{self.attempt_uri}.json"


def read_document(data: bytes, *, source: str) -> RehearsalDocument:
    """Read a launch document.

    Raises:
        DocumentProblem: it is not YAML, lacks a field, or asks for what a rehearsal cannot do; one
            line for each finding.
    """
    try:
        value = load_yaml(data, source=source)
        document = RehearsalDocument.model_validate(value)
    except DocumentError as error:
        raise DocumentProblem(str(error)) from None
    except ValidationError as error:
        raise DocumentProblem("\n".join(_sentence(source, finding) for finding in error.errors())) from None
    problems = _cannot_rehearse(document)
    if problems:
        raise DocumentProblem("\n".join(f"{source}: {problem}" for problem in problems))
    return document


def document_digest(data: bytes, *, source: str) -> str:
    """Return the digest (64 hex digits) of the document's values, not of its YAML formatting."""
    return digest_of(load_yaml(data, source=source))


def notices(document: RehearsalDocument) -> tuple[str, ...]:
    """Say what of this document the rehearsal replaces by something simpler."""
    entrypoint = document.skyrl.entrypoint or "standard"
    found = []
    if entrypoint != "standard":
        found.append(f"skyrl.entrypoint is {entrypoint!r}; the rehearsal generates and trains in turns")
    if document.skyrl.terminal_bench is not None:
        found.append("skyrl.terminal_bench asks for agents in sandboxes; the rehearsal starts none")
    if document.ingress.mode != "direct":
        found.append(f"ingress.mode is {document.ingress.mode!r}; nothing calls the rehearsal from outside")
    inputs = document.inputs
    if any(source.kind == "tasktrove_parquet" for source in (*inputs.train_data, *inputs.validation_data)):
        found.append(
            "inputs name a TaskTrove selection; toy rows have no sources, tags or modes, so it draws up to its "
            "limit from all of them"
        )
    if document.skyrl.trainer.algorithm.policy_loss_type == "gspo":
        found.append("policy_loss_type is 'gspo'; answers have one token here, so it equals 'regular'")
    return tuple(found)


def _cannot_rehearse(document: RehearsalDocument) -> list[str]:
    trainer, problems = document.skyrl.trainer, []
    estimator = trainer.algorithm.advantage_estimator
    if estimator not in REHEARSABLE_ESTIMATORS:
        problems.append(
            f"skyrl.trainer.algorithm.advantage_estimator is {estimator!r}. A rehearsal can do "
            f"{' and '.join(REHEARSABLE_ESTIMATORS)}: rehearse with one of them"
        )
    loss = trainer.algorithm.policy_loss_type
    if loss not in REHEARSABLE_LOSSES:
        problems.append(
            f"skyrl.trainer.algorithm.policy_loss_type is {loss!r}. A rehearsal can do "
            f"{' and '.join(REHEARSABLE_LOSSES)}: rehearse with one of them"
        )
    if trainer.train_batch_size % trainer.policy_mini_batch_size:
        batch, mini = trainer.train_batch_size, trainer.policy_mini_batch_size
        problems.append(
            f"skyrl.trainer.train_batch_size is {batch} and policy_mini_batch_size is {mini}: "
            f"{batch} % {mini} = {batch % mini}. Make the first a multiple of the second"
        )
    return problems


def _sentence(source: str, finding: Any) -> str:
    place = ".".join(str(part) for part in finding["loc"]) or "the document"
    if finding["type"] == "missing":
        return f"{source}: {place} is missing. Add it"
    if finding["type"] == "literal_error":
        return (
            f"{source}: {place} is {finding['input']!r}. A rehearsal can do only {finding['ctx']['expected']}"
        )
    message = finding["msg"][0].lower() + finding["msg"][1:]
    return f"{source}: {place} is {finding['input']!r}. A rehearsal needs it otherwise: {message}"
