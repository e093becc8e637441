"""The plan: what a person reads before a launch."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.documents.printable import printable
from tools.launcher.render.digests import LaunchDigests
from tools.launcher.render.schedule import schedule_rows

_WINDOW = "generator.engine_init_kwargs.max_model_len"
_FROZEN = ConfigDict(frozen=True, strict=True, extra="forbid")


class PlannedRole(BaseModel):
    """One role and the GPUs it occupies."""

    model_config = _FROZEN

    role: str
    nodes: int
    gpus: int
    layout: str
    """Parallel sizes in words, such as `8 engines, TP 1, PP 1, DP 1, EP 1`."""


class PlannedBatches(BaseModel):
    """Batch arithmetic of one training step."""

    model_config = _FROZEN

    prompts_per_step: int
    """T."""
    samples_per_prompt: int
    """n: answers that the engines give to one prompt."""
    rows_per_step: int
    """What of them is learned from: T*n, or T where only the best answer to each prompt is kept."""
    prompts_per_mini_batch: int
    """M."""
    optimizer_steps_per_batch: int
    """T // M, as often as the batch is gone through."""
    data_parallel_ranks: int
    """dp of the policy."""
    rows_per_rank: int
    """m = M*n // dp."""
    micro_batch: int
    """u, rows per GPU."""
    micro_steps: int
    """m // u: forward and backward passes per optimizer step."""
    update_epochs: int = 1
    """How often a batch is gone through."""

    @property
    def answers_per_step(self) -> int:
        """T*n."""
        return self.prompts_per_step * self.samples_per_prompt

    @property
    def rows_per_prompt(self) -> int:
        """Answers to a prompt that are learned from."""
        return self.rows_per_step // self.prompts_per_step


class PlannedArtifact(BaseModel):
    """One step of the graph."""

    model_config = _FROZEN

    stage: str
    kind: str
    identity: str
    path: str
    adopted: bool = False
    """Whether it exists already, so that the launch only reads it."""
    deps: tuple[str, ...] = ()
    """Identities of what it is made from."""


class LaunchPlan(BaseModel):
    """Everything `:plan` prints. Derived only from the target's inputs."""

    model_config = _FROZEN

    experiment: str
    version: str
    options: dict[str, str]
    terminal_stage: str
    stages: dict[str, str]
    """Stage -> its last step; `import` has several without an order and is not there."""
    smoke: str | None
    """Label of the experiment whose success a large launch requires."""
    runtime: dict[str, str]
    """manifest, commit, profile."""
    entrypoint: str
    allocation: dict[str, str | int | float]
    roles: tuple[PlannedRole, ...]
    batches: PlannedBatches
    lengths: dict[str, int]
    """Token lengths that follow from the context budget."""
    memory: dict[str, str]
    """What the launch holds in memory -> how much, estimated, or what is not known."""
    artifacts: tuple[PlannedArtifact, ...]
    outputs: dict[str, str]
    digests: LaunchDigests
    preflight: dict[str, Any]
    """Report of preflight as JSON values: warnings, what was not checked, ids that passed."""
    detail: dict[str, Any] | None = None
    """A `PlanDetail` as JSON values, for report, sweep and schedule. None in a bundle from before there was any:
    a relaunch still reads that."""


def plan_summary(plan: LaunchPlan) -> str:
    """Return the two lines that a successful build prints."""
    nodes, gpus = plan.allocation["num_nodes"], plan.allocation["gpus_per_node"]
    where = printable(f"{plan.allocation['gpu_variant']} on {plan.allocation['cluster']}")
    return (
        f"{plan.experiment} {plan.version}: {_counted(nodes, 'node')} x {gpus} {where}, "
        f"stage {plan.terminal_stage}\n"
        f"recipe sha256:{plan.digests.recipe} launch sha256:{plan.digests.launch}\n"
    )


def _counted(number: int | float | str, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def plan_sections(plan: LaunchPlan) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the plan as (section title, rows of (name, value)), in reading order."""
    batches = plan.batches
    prompts = _counted(batches.prompts_per_step, "prompt")
    mini, ranks = batches.prompts_per_mini_batch, batches.data_parallel_ranks
    answers = _counted(batches.samples_per_prompt, "sample")
    if batches.rows_per_prompt != batches.samples_per_prompt:
        answers += f", the best {batches.rows_per_prompt} of them"
    epochs = f" x {batches.update_epochs} epochs" if batches.update_epochs > 1 else ""
    return [
        (
            "experiment",
            [
                ("target", plan.experiment),
                ("version", plan.version),
                ("options", ", ".join(f"{name}={value}" for name, value in plan.options.items()) or "none"),
                ("terminal stage", f"{plan.terminal_stage} ({_ends(plan)})"),
                *([("smoke", plan.smoke)] if plan.smoke else []),
                ("recipe digest", f"sha256:{plan.digests.recipe}"),
                ("launch digest", f"sha256:{plan.digests.launch}"),
            ],
        ),
        ("runtime", [*plan.runtime.items(), ("entrypoint", plan.entrypoint)]),
        ("allocation", [(name.replace("_", " "), str(value)) for name, value in plan.allocation.items()]),
        (
            "roles",
            [
                (
                    role.role,
                    f"{_counted(role.nodes, 'node')}, {_counted(role.gpus, 'GPU')}: {role.layout}"
                    if role.gpus
                    else role.layout,
                )
                for role in plan.roles
            ],
        ),
        *_schedule(plan),
        (
            "batches",
            [
                (
                    "per step",
                    f"{prompts} x {answers} = {_counted(batches.rows_per_step, 'row')}",
                ),
                (
                    "optimizer steps",
                    f"{batches.prompts_per_step} // {_counted(mini, 'prompt')}{epochs} = {batches.optimizer_steps_per_batch} per batch",
                ),
                (
                    "per rank",
                    f"{mini}*{batches.rows_per_prompt} // {_counted(ranks, 'rank')} = {_counted(batches.rows_per_rank, 'row')}",
                ),
                (
                    "micro steps",
                    f"{batches.rows_per_rank} // {_counted(batches.micro_batch, 'row')} = {batches.micro_steps} per optimizer step",
                ),
            ],
        ),
        ("token lengths", [(path, str(value)) for path, value in plan.lengths.items()]),
        ("memory", list(plan.memory.items())),
        (
            "artifacts",
            [(f"{item.stage} {item.kind}", f"{item.identity}  {item.path}") for item in plan.artifacts],
        ),
        ("outputs", [(name.replace("_", " "), path) for name, path in plan.outputs.items()]),
        (
            "preflight",
            [
                *(
                    (item["id"], f"warning at {item['path']}: {item['message']}")
                    for item in plan.preflight["violations"]
                ),
                *(
                    (item["id"], f"not checked: needs {item['needs']}")
                    for item in plan.preflight["not_checked"]
                ),
                ("passed", f"{len(plan.preflight['passed'])} checks"),
            ],
        ),
        *_checklist(plan),
    ]


def _schedule(plan: LaunchPlan) -> list[tuple[str, list[tuple[str, str]]]]:
    """The section of steps, rate and cost, if the plan says them."""
    rows = schedule_rows(
        plan.detail,
        gpus=int(plan.allocation["num_nodes"]) * int(plan.allocation["gpus_per_node"]),
        answers_per_step=plan.batches.answers_per_step,
        window=plan.lengths.get(_WINDOW),
    )
    return [("schedule", rows)] if rows else []


def _ends(plan: LaunchPlan) -> str:
    """What ends the terminal stage: a step, or several without an order."""
    last = plan.stages.get(plan.terminal_stage)
    return last or ", ".join(item.identity for item in plan.artifacts if item.stage == plan.terminal_stage)


def _checklist(plan: LaunchPlan) -> list[tuple[str, list[tuple[str, str]]]]:
    """The section of what nobody but a person can look at, if there is any."""
    lines = [(item["id"], item["message"]) for item in plan.preflight["checklist"]]
    return [("before the launch, look at", lines)] if lines else []


def plan_text(plan: LaunchPlan) -> str:
    """Return the plan as plain text with aligned columns."""
    lines: list[str] = []
    for title, rows in plan_sections(plan):
        width = max(len(name) for name, _ in rows)
        lines.append(title)
        lines += [f"  {name:<{width}}  {printable(value)}" for name, value in rows]
    return "\n".join(lines) + "\n"
