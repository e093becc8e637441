"""Rules on what ran before. Where they could matter they need the version ledger."""

from collections.abc import Iterator

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.graph.versions import is_mutable
from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.artifacts.addresses import document_address
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject


@check(
    "ART-06",
    "no checkpoints of another runtime are resumed",
    area="artifacts",
    rule="(name, version) did not run under another runtime commit or fingerprint, or resume_mode is none",
    prevents="The new code loads the old code's optimizer and loader state, or fails to and starts from step 0.",
    inputs=("spec", "runtime", "ledger"),
    source="catalogue ART-06 (#6), failure rows 7 and 8 (marin#7797, marin#3790); nobody checks it",
)
def art_06(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.value("skyrl.trainer.resume_mode", str) != "none":
        raise MissingFact("the version ledger: which runtime made the checkpoints of this version")
    yield from ()


@check(
    "ART-13",
    "the run is not finished already",
    area="artifacts",
    rule="the terminal manifest of the output path does not exist",
    prevents="The manifest is written once; the launcher refuses after the coordinator started.",
    inputs=("spec", "ledger"),
    source="catalogue ART-13 (#13); the launcher, late",
)
def art_13(subject: PreflightSubject) -> Iterator[Finding]:
    yield from ()
    raise MissingFact("the version ledger: whether this version is finished")


@check(
    "ART-17",
    "a fixed version keeps its fingerprint",
    area="artifacts",
    rule="the record of a fixed (name, version) carries the fingerprint of this definition",
    prevents="The cached result of the old recipe is returned; the changed recipe is never run.",
    inputs=("spec", "ledger"),
    source="catalogue ART-17 (new), failure row 7 (marin#7797); Marin only warns",
)
def art_17(subject: PreflightSubject) -> Iterator[Finding]:
    if not is_mutable(document_address(subject)[1]):
        raise MissingFact("the version ledger: the fingerprint under which this version was published")
    yield from ()


CHECKS = (art_06, art_13, art_17)
