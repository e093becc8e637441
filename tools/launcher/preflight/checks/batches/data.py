"""Whether the dataset is large enough for the batches and steps that are asked for."""

from collections.abc import Iterator

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.batches.legal import TRAIN, smaller_batch_repair
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry, ceil_div
from tools.launcher.preflight.prompts import kept_rows, missing_count
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import counted, set_to

_EPOCHS = "skyrl.trainer.epochs"
_MAX_STEPS = "skyrl.trainer.max_steps"
_EVAL_BEFORE = "skyrl.trainer.eval_before_train"
_EVAL_INTERVAL = "skyrl.trainer.eval_interval"
_EVAL_BATCH = "skyrl.trainer.eval_batch_size"


@check(
    "BAT-09",
    "the dataset fills a batch",
    area="batches",
    rule="dataset rows >= T",
    prevents="Zero steps per epoch; the run succeeds without training.",
    inputs=("spec", "dataset"),
    source="catalogue BAT-09 (#45); nobody checks it",
)
def bat_09(subject: PreflightSubject) -> Iterator[Finding]:
    rows, train = subject.train_fact("rows"), Geometry.of(subject).train_batch
    if rows is not None and rows < train:
        yield Finding(
            path=TRAIN,
            message=f"dataset has {counted(rows, 'row')}, train_batch_size is {train}",
            repair=smaller_batch_repair(subject, rows, set_to(TRAIN, rows))
            if rows
            else "use a dataset with rows",
        )


@check(
    "BAT-11",
    "validation rows are whole batches where the runtime asks for it",
    area="batches",
    rule="runtimes that descend from SkyRL 0.2.0: validation rows % T == 0",
    prevents="An assertion after the first evaluation.",
    inputs=("spec", "dataset", "runtime"),
    source="catalogue BAT-11 (#47), failure row 20 (SkyRL#1583); old trainers",
)
def bat_11(subject: PreflightSubject) -> Iterator[Finding]:
    asked = subject.manifest().validation_rows_multiple_of_batch
    if asked is None:
        raise MissingFact("validation_rows_multiple_of_batch in the runtime manifest")
    if not asked:
        return
    rows, train = _validation_rows(subject), Geometry.of(subject).train_batch
    if rows % train:
        fewer = rows // train * train
        yield Finding(
            path="inputs.validation_data",
            message=f"validation set has {counted(rows, 'row')}; this runtime needs a multiple of train_batch_size={train}",
            repair=f"trim it to {counted(fewer, 'row')}"
            if fewer
            else f"extend it to {counted(train, 'row')}",
        )


def _validation_rows(subject: PreflightSubject) -> int:
    rows: int | None = subject.validation_fact("validation_rows")
    if rows is None:
        raise MissingFact("validation_rows in the dataset card")
    return rows


@check(
    "BAT-16",
    "enough prompts fit the window",
    area="batches",
    rule="rows with prompt tokens <= W-N: at least T",
    prevents="The filter is silent; an epoch can shrink to nothing.",
    inputs=("spec", "dataset", "model"),
    source="catalogue BAT-16 (new); nobody checks it",
    implied_by=("BAT-09",),
)
def bat_16(subject: PreflightSubject) -> Iterator[Finding]:
    kept, train = kept_rows(subject), Geometry.of(subject).train_batch
    if kept.at_most < train:
        yield Finding(
            path=TRAIN,
            message=f"only {kept.at_most} of {kept.total} rows have prompts of at most W-N={kept.limit} tokens; "
            f"train_batch_size is {train}",
            repair=smaller_batch_repair(subject, kept.at_most, set_to(TRAIN, kept.at_most))
            if kept.at_most
            else "raise request_window_tokens of the context budget",
        )
    elif kept.at_least < train:
        raise missing_count(subject, kept.limit)


@check(
    "BAT-17",
    "the data lasts for the steps",
    area="batches",
    rule="floor(rows kept / T)*epochs >= max(1, max_steps)",
    prevents="max_steps: 500 ends at 120 without complaint.",
    inputs=("spec", "dataset", "runtime"),
    source="catalogue BAT-17 (new); nobody checks it",
    implied_by=("BAT-09", "BAT-16"),
)
def bat_17(subject: PreflightSubject) -> Iterator[Finding]:
    geometry, kept = Geometry.of(subject), kept_rows(subject)
    batch = geometry.mini_batch if subject.entrypoint == "fully_async" else geometry.train_batch
    epochs = subject.positive(_EPOCHS)
    wanted = subject.positive(_MAX_STEPS) if subject.has(_MAX_STEPS) else 1
    steps = kept.at_most // batch * epochs
    if steps < wanted:
        asked = f", max_steps asks {wanted}" if subject.has(_MAX_STEPS) else ""
        enough = ceil_div(wanted, kept.at_most // batch) if kept.at_most >= batch else None
        yield Finding(
            path=_MAX_STEPS if subject.has(_MAX_STEPS) else _EPOCHS,
            message=f"{counted(kept.at_most, 'row')} in batches of {batch} give {counted(steps, 'step')} in "
            f"{counted(epochs, 'epoch')}{asked}",
            repair=set_to(_EPOCHS, enough) if enough is not None else set_to(TRAIN, max(1, kept.at_most)),
            severity="warning",
        )
    elif kept.at_least // batch * epochs < wanted:
        raise missing_count(subject, kept.limit)


@check(
    "BAT-19",
    "evaluation has data",
    area="batches",
    rule="eval_before_train or eval_interval > 0 implies validation data; eval_batch_size <= validation rows",
    prevents="Evaluation runs on a file in the home directory; base default: before training, in batches of 1024.",
    inputs=("spec", "dataset", "runtime"),
    source="catalogue BAT-19 (new); nobody checks it",
)
def bat_19(subject: PreflightSubject) -> Iterator[Finding]:
    before, interval = subject.flag(_EVAL_BEFORE), subject.integer(_EVAL_INTERVAL)
    if not before and interval <= 0:
        return
    if not subject.get("inputs.validation_data"):
        asks = "eval_before_train is true" if before else f"eval_interval is {interval}"
        yield Finding(
            path="inputs.validation_data",
            message=f"{asks} but validation_data is empty",
            repair="add validation data, or set eval_before_train=false and eval_interval=-1",
            severity="warning",
        )
        return
    rows, batch = _validation_rows(subject), subject.positive(_EVAL_BATCH)
    if batch > rows:
        yield Finding(
            path=_EVAL_BATCH,
            message=f"eval_batch_size={batch} exceeds the {counted(rows, 'validation row')}",
            repair=set_to(_EVAL_BATCH, rows) if rows else "use validation data with rows",
            severity="warning",
        )


CHECKS = (bat_09, bat_11, bat_16, bat_17, bat_19)
