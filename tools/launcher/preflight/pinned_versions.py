"""What the version ledger says of a subject: one reading for the checks and for the graph document."""

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.graph.ledger import PinnedVersion, RunIdentity, VersionLedger, compatible_recipes, repins
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.rl.pinning import run_identity

COMMIT = "runtime.launcher_commit"
RESUME_MODE = "skyrl.trainer.resume_mode"


def require_ledger(subject: PreflightSubject, what: str) -> VersionLedger:
    """Return the ledger. Raises MissingFact, naming `what` it would tell."""
    if subject.ledger is None:
        raise MissingFact(f"the version ledger: {what}")
    return subject.ledger


def rl_step(subject: PreflightSubject) -> ArtifactStep | None:
    """Return the RL step of a subject that was built here, None of a document without its graph."""
    steps = () if subject.planned is None else subject.planned.graph.steps
    return next((step for step in steps if step.kind == "skyrl"), None)


def build_identity(subject: PreflightSubject, run: ArtifactStep) -> RunIdentity:
    """Return what the ledger compares of a subject that was built here. Raises as `subject.value`."""
    identity: RunIdentity | None = subject.derived.get(__name__)
    if identity is None:
        runtime, resume_mode = subject.text(COMMIT), subject.text(RESUME_MODE)
        identity = run_identity(run, subject.document, runtime=runtime, resume_mode=resume_mode)
        subject.derived[__name__] = identity
    return identity


def pinned_run(subject: PreflightSubject) -> PinnedVersion | None:
    """Return the ledger's entry for the RL step of a subject that was built here, None without either."""
    run = rl_step(subject)
    return None if run is None or subject.ledger is None else subject.ledger.pinned(run.name, run.version)


def compatible_with(subject: PreflightSubject) -> tuple[str, ...]:
    """Return the fingerprints of the RL step whose place in the store this build may take, oldest first."""
    run, pin = rl_step(subject), pinned_run(subject)
    return () if run is None or pin is None else compatible_recipes(pin, build_identity(subject, run))


def repins_of(subject: PreflightSubject) -> int:
    """Return how often the version of a subject that was built here was repinned."""
    run, pin = rl_step(subject), pinned_run(subject)
    return 0 if run is None or pin is None else repins(pin, build_identity(subject, run))
