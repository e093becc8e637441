"""What an entry point trains, and for how many steps at most."""

from tools.launcher.catalog.runtime_manifest import Entrypoint
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.lengths import stated
from tools.launcher.preflight.prompts import kept_rows
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.wording import shown

_MAX_STEPS = "skyrl.trainer.max_steps"


def trains(subject: PreflightSubject) -> bool:
    """Whether the entry point trains at all. Raises like `PreflightSubject.value`."""
    return _entry(subject).training_type is not None


def asynchronous(subject: PreflightSubject) -> bool:
    """Whether generation and training overlap. Raises like `PreflightSubject.value`."""
    entry = _entry(subject)
    if entry.async_unless_colocated:
        return not Geometry.of(subject).colocate_all
    return entry.training_type == "async"


def most_steps(subject: PreflightSubject) -> int:
    """Return an upper bound of the training steps: max_steps, and what the data gives.

    Zero and less in max_steps are no limit (MarinSkyRL skyrl_train/trainer.py@a559688c).

    Raises:
        MissingFact: neither max_steps nor a dataset card with rows.
        UnreadableValue: a value that it needs is not usable.
    """
    bounds = []
    if subject.has(_MAX_STEPS) and subject.integer(_MAX_STEPS) > 0:
        bounds.append(subject.integer(_MAX_STEPS))
    rows = subject.train_dataset.rows if subject.train_dataset is not None else None
    if rows is None and not bounds:
        rows = subject.train_fact("rows") or 0
    if rows is not None:
        geometry = Geometry.of(subject)
        batch = geometry.mini_batch if subject.entrypoint == "fully_async" else geometry.train_batch
        kept = kept_rows(subject).at_most if stated(subject) else rows
        bounds.append(kept // batch * subject.positive("skyrl.trainer.epochs"))
    return min(bounds)


def _entry(subject: PreflightSubject) -> Entrypoint:
    name = subject.entrypoint
    entry = subject.manifest().entrypoints.get(name)
    if entry is None:  # OBJ-03
        raise UnreadableValue(f"skyrl.entrypoint as a registered name, it is {shown(name)}")
    return entry
