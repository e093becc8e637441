"""Steps, checkpoints, exports and the optimizer."""

from collections.abc import Iterator

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.bounds import AT_LEAST_ONE, FRACTION, NOT_NEGATIVE, Bounds, Limit, out_of_bounds
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import nearest_multiples
from tools.launcher.preflight.schedule import most_steps, trains
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.wording import counted, delete, listed, set_to, shown

_TRAINER = "skyrl.trainer"
_KEEP = f"{_TRAINER}.max_ckpts_to_keep"
_RETENTION = "artifacts.resume_checkpoint_count"
_CKPT = f"{_TRAINER}.ckpt_interval"
_HF = f"{_TRAINER}.hf_save_interval"
_EVAL = f"{_TRAINER}.eval_interval"
_MAX_STEPS = f"{_TRAINER}.max_steps"
_RESUME_MODE = f"{_TRAINER}.resume_mode"
_RESUME_PATH = f"{_TRAINER}.resume_path"
_DEBUG = f"{_TRAINER}.debug_mode"
_EXPORT = "run.export_hf"
_BETAS = f"{_TRAINER}.policy.optimizer_config.adam_betas"
_RATE = f"{_TRAINER}.policy.optimizer_config.lr"


@check(
    "OBJ-05",
    "at least one checkpoint is kept",
    area="objective",
    rule="max_ckpts_to_keep != 0; the launcher takes it from artifacts.resume_checkpoint_count",
    prevents="The trainer refuses the document.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-05 (#94); the trainer",
)
def obj_05(subject: PreflightSubject) -> Iterator[Finding]:
    low, high = subject.manifest().resume_checkpoint_count
    path = _RETENTION if subject.source_form else _KEEP
    kept = subject.get(path)
    if type(kept) is int and kept == 0:
        yield Finding(
            path=path,
            message=f"{path.rpartition('.')[2]} is 0: no checkpoint would be kept. Allowed: {low}..{high}",
            repair=set_to(path, min(max(2, low), high)),
        )


@check(
    "OBJ-06",
    "exports during training have a checkpoint",
    area="objective",
    rule="hf_save_interval and ckpt_interval both > 0: hf_save_interval % ckpt_interval == 0",
    prevents="An export points at a step without checkpoint.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-06 (#95), MarinSkyRL skyrl_train/utils/utils.py@004e15f9; newer trainers",
)
def obj_06(subject: PreflightSubject) -> Iterator[Finding]:
    export, checkpoint = subject.integer(_HF), subject.integer(_CKPT)
    if export <= 0:
        return
    if checkpoint <= 0:
        yield Finding(
            path=_HF,
            message=f"hf_save_interval={export}, but ckpt_interval={checkpoint} switches checkpoints off",
            repair=set_to(_HF, -1),
            severity="warning",
        )
    elif export % checkpoint:
        yield Finding(
            path=_HF,
            message=f"hf_save_interval={export} is not a multiple of ckpt_interval={checkpoint}",
            repair=set_to(_HF, *nearest_multiples(export, checkpoint)),
        )


@check(
    "OBJ-07",
    "resume path and resume mode belong together",
    area="objective",
    rule="resume_mode from_path if and only if resume_path is set",
    prevents="The run starts from scratch.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-07 (#96), MarinSkyRL cloud/iris/recipe_preflight.py@4c8d412f; a branch tool",
)
def obj_07(subject: PreflightSubject) -> Iterator[Finding]:
    mode, path = subject.text(_RESUME_MODE), subject.get(_RESUME_PATH)
    if mode == "from_path" and not path:
        yield Finding(
            path=_RESUME_PATH,
            message="resume_mode is from_path, but resume_path is not set",
            repair=set_to(_RESUME_MODE, "latest"),
        )
    elif mode != "from_path" and path:
        yield Finding(
            path=_RESUME_MODE,
            message=f"resume_path is set but resume_mode is {shown(mode)}, which does not read it",
            repair=set_to(_RESUME_MODE, "from_path"),
        )


def _exports(subject: PreflightSubject) -> bool:
    """Whether success needs an exported policy; the document's default is true."""
    value = subject.get(_EXPORT)
    if value is not None and type(value) is not bool:
        raise UnreadableValue(f"{_EXPORT} as bool, it is {shown(value)}")
    return value is not False and subject.get("run.mode") != "checkpoint_export" and trains(subject)


@check(
    "OBJ-08",
    "the export has a checkpoint at the end",
    area="objective",
    rule="run.export_hf true: 0 < ckpt_interval <= steps; beyond the steps only a final save helps",
    prevents="The run ends without anything to export.",
    inputs=("spec", "dataset", "runtime"),
    source="catalogue OBJ-08 (#97), cases n58 and n59; nobody checks it",
)
def obj_08(subject: PreflightSubject) -> Iterator[Finding]:
    if not _exports(subject):
        return
    interval = subject.integer(_CKPT)
    if interval <= 0:
        yield Finding(
            path=_CKPT,
            message=f"export_hf needs a checkpoint, but ckpt_interval={interval} switches checkpoints off. Or set "
            "run.export_hf=false",
            repair=set_to(_CKPT, 1 if not subject.has(_MAX_STEPS) else max(1, subject.integer(_MAX_STEPS))),
        )
        return
    steps = most_steps(subject)
    if 0 < steps < interval:
        yield Finding(
            path=_CKPT,
            message=f"export_hf needs a checkpoint, but ckpt_interval={interval} exceeds {counted(steps, 'step')}: only "
            "the save at the end is left",
            repair=set_to(_CKPT, steps),
            severity="warning",
        )


@check(
    "OBJ-17",
    "intervals fire",
    area="objective",
    rule="declared eval_interval, and ckpt_interval where nothing is exported: <= steps where > 0",
    prevents="They never fire.",
    inputs=("spec", "dataset", "runtime"),
    source="catalogue OBJ-17 (new); nobody checks it",
)
def obj_17(subject: PreflightSubject) -> Iterator[Finding]:
    if not trains(subject):
        return
    paths = [path for path in (_EVAL, _CKPT) if subject.has(path) and subject.integer(path) > 0]
    if _exports(subject) and _CKPT in paths:
        paths.remove(_CKPT)  # OBJ-08
    if not paths:
        return
    steps = most_steps(subject)
    for path in paths:
        interval = subject.integer(path)
        if 0 < steps < interval:
            yield Finding(
                path=path,
                message=f"{path.rpartition('.')[2]}={interval} never fires in {counted(steps, 'step')}",
                repair=set_to(path, steps, -1),
                severity="warning",
            )


@check(
    "OBJ-19",
    "resume and debug modes are the runtime's words",
    area="objective",
    rule="resume_mode and debug_mode are in their enumerations; a bare off is the boolean false in YAML",
    prevents="The trainer gets another type or word than it knows.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-19 (new), contract runtime-facts.md §9; the trainer",
)
def obj_19(subject: PreflightSubject) -> Iterator[Finding]:
    for path in (_RESUME_MODE, _DEBUG):
        known = subject.manifest().recipe_enums.get(path.removeprefix("skyrl."))
        if known is None:
            raise MissingFact(f"recipe_enums of {path.removeprefix('skyrl.')} in the runtime manifest")
        value = subject.get(path)
        if value is None or value in known:
            continue
        name = path.rpartition(".")[2]
        if value is False and "off" in known:
            yield Finding(
                path=path,
                message=f'{name} is a boolean: YAML reads a bare off as false. Write "off" in quotes',
                repair=set_to(path, '"off"'),
            )
        else:
            yield Finding(
                path=path,
                message=f"{name} is {shown(value)}. Known: {listed(known)}",
                repair=set_to(path, *(f'"{word}"' if word == "off" else word for word in known)),
            )


_RATES = (
    Limit("trainer.policy.optimizer_config.lr", NOT_NEGATIVE, 1e-06),
    Limit("trainer.policy.optimizer_config.weight_decay", NOT_NEGATIVE, 0.01),
    Limit("trainer.policy.model.lora.dropout", FRACTION, 0),
)
_BETA = Bounds(low=0, high=1, open_high=True)


@check(
    "OBJ-21",
    "the optimizer accepts its settings",
    area="objective",
    rule="lr >= 0 (0 trains nothing: a warning); weight_decay >= 0; adam_betas two numbers in [0, 1); dropout in [0, 1]",
    prevents="The optimizer refuses its settings when the policy is built, or nothing is learned.",
    inputs=("spec",),
    source="torch.optim.AdamW's own checks; nobody checks it before",
)
def obj_21(subject: PreflightSubject) -> Iterator[Finding]:
    yield from out_of_bounds(subject, _RATES)
    rate = subject.get(_RATE)
    if type(rate) in (int, float) and rate == 0:
        yield Finding(
            path=_RATE,
            message="lr=0: nothing is learned",
            repair=set_to(_RATE, 1e-06),
            severity="warning",
        )
    betas = subject.get(_BETAS)
    if isinstance(betas, list) and not (
        len(betas) == 2 and all(type(beta) in (int, float) and _BETA.holds(beta) for beta in betas)
    ):
        yield Finding(
            path=_BETAS,
            message=f"adam_betas must be two numbers {_BETA}, got {listed(shown(beta) for beta in betas) or 'none'}",
            repair=delete(_BETAS),
        )


_COUNTS = (
    Limit("trainer.epochs", AT_LEAST_ONE, 1),
    Limit("trainer.update_epochs_per_batch", AT_LEAST_ONE, 1),
    Limit("trainer.eval_batch_size", AT_LEAST_ONE, 1),
)
_SWITCHED = (_CKPT, _EVAL, _HF)


@check(
    "OBJ-22",
    "the schedule asks for steps",
    area="objective",
    rule="epochs, update_epochs_per_batch, eval_batch_size >= 1; intervals > 0, or -1 for off; max_steps > 0, or null",
    prevents="The run ends at once and counts as a success; other negative numbers read like a mistake.",
    inputs=("spec", "runtime"),
    source="MarinSkyRL skyrl_train/trainer.py@a559688c; nobody checks it",
)
def obj_22(subject: PreflightSubject) -> Iterator[Finding]:
    if not trains(subject):
        return
    yield from out_of_bounds(subject, _COUNTS)
    for path in _SWITCHED:
        value = subject.get(path)
        if type(value) is int and value < -1:
            yield Finding(
                path=path,
                message=f"{path.rpartition('.')[2]}={value} switches it off; write -1",
                repair=set_to(path, -1),
                severity="warning",
            )
    steps = subject.get(_MAX_STEPS)
    if type(steps) is int and steps <= 0:
        yield Finding(
            path=_MAX_STEPS,
            message=f"max_steps={steps} is no limit in the trainers seen; leave it out to say so",
            repair=delete(_MAX_STEPS),
            severity="warning",
        )


CHECKS = (obj_05, obj_06, obj_07, obj_08, obj_17, obj_19, obj_21, obj_22)
