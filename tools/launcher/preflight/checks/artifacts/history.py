"""Rules on what ran before under the same name and version."""

from collections.abc import Iterator

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.documents.canonical import CanonicalEncodingError, digest_of
from tools.launcher.graph.document_recipe import document_recipe
from tools.launcher.graph.ledger import PinnedVersion, RunIdentity, foreign_checkpoints, recipe_changed
from tools.launcher.graph.versions import following_version, is_mutable
from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.artifacts.addresses import document_address
from tools.launcher.preflight.findings import Finding, Reminder
from tools.launcher.preflight.pinned_versions import (
    COMMIT,
    RESUME_MODE,
    build_identity,
    require_ledger,
    rl_step,
)
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.rl.pinning import FRESH

_TERMINAL = "artifacts.terminal_manifest_uri"
_SHOWN_DIGITS = 8
_PIN = "run the experiment's :pin, which writes it into versions.lock.yaml, and commit that"


@check(
    "ART-06",
    "no checkpoints of another runtime are resumed",
    area="artifacts",
    rule="the ledger has (name, version) under this runtime commit, or says why checkpoints are compatible, or "
    "resume_mode is none",
    prevents="The new code loads the old code's optimizer and loader state, or fails to and starts from step 0.",
    inputs=("spec", "runtime", "ledger"),
    source="catalogue ART-06 (#6), failure rows 7 and 8 (marin#7797, marin#3790); nobody checks it",
)
def art_06(subject: PreflightSubject) -> Iterator[Finding | Reminder]:
    name, version = _address(subject)
    starts_fresh = subject.text(RESUME_MODE) == FRESH
    if is_mutable(version):
        if not starts_fresh:
            yield Reminder(
                message=f"{name}@{version} is not a fixed version, and the ledger has none of those: at the launch, "
                "checkpoints of another recipe or runtime below its path stop the run"
            )
        return
    if starts_fresh:
        return
    ledger = require_ledger(subject, "which runtime made the checkpoints of this version")
    pin, commit = ledger.pinned(name, version), subject.text(COMMIT)
    if pin is not None and foreign_checkpoints(pin, runtime=commit, starts_fresh=starts_fresh):
        yield Finding(
            path=COMMIT,
            message=f"{name}@{version} has checkpoints from runtime {pin.runtime[:_SHOWN_DIGITS]}; "
            f"this build uses {commit[:_SHOWN_DIGITS]}",
            repair=f"set {RESUME_MODE}={FRESH} to start at step 0, or publish a new version, or write "
            "`checkpoints: compatible` and `because: …` into the ledger's entry",
        )


@check(
    "ART-13",
    "the run is not finished already",
    area="artifacts",
    rule="the terminal manifest of the output path does not exist; decided at launch, because a finished experiment "
    "must still build",
    prevents="The manifest is written once; a launch of a finished version trains nothing.",
    inputs=("spec",),
    source="catalogue ART-13 (#13); the launcher, late",
)
def art_13(subject: PreflightSubject) -> Iterator[Reminder]:
    name, version = _address(subject)
    manifest = subject.text(_TERMINAL)
    yield Reminder(
        message=f"decided at launch: if {manifest} exists, {name}@{version} is finished and is not trained again. "
        "Publish a new version to train again"
    )


@check(
    "ART-17",
    "a fixed version keeps its fingerprint",
    area="artifacts",
    rule="the ledger has the fixed (name, version) with the fingerprint of this definition; under another runtime "
    "commit, with that of everything else",
    prevents="The cached result of the old recipe is returned; the changed recipe is never run.",
    inputs=("spec", "ledger"),
    source="catalogue ART-17 (new), failure row 7 (marin#7797); Marin only warns",
)
def art_17(subject: PreflightSubject) -> Iterator[Finding | Reminder]:
    name, version = _address(subject)
    if is_mutable(version):
        return
    ledger = require_ledger(subject, "the fingerprint under which this version was published")
    pin = ledger.pinned(name, version)
    if pin is None:
        yield Reminder(message=f"{name}@{version} is not pinned yet: {_PIN}")
        return
    address, free = f"{name}@{version}", following_version(version)
    while ledger.pinned(name, free) is not None:
        free = following_version(free)
    try:
        run = rl_step(subject)
        if run is None:
            yield from _of_document(subject, pin, address, free)
        else:
            yield from _of_build(subject, pin, build_identity(subject, run), address, free)
    except CanonicalEncodingError:
        raise MissingFact("a document that has a digest") from None


def _of_build(
    subject: PreflightSubject, pin: PinnedVersion, build: RunIdentity, address: str, free: str
) -> Iterator[Finding | Reminder]:
    if subject.planned is not None and subject.planned.launch not in (None, build.launch):
        # A proposal of the search: only its document is known.
        if build.document != pin.document:
            yield _changed(address, pin.document, f"this proposal is {build.document[:_SHOWN_DIGITS]}", free)
    elif recipe_changed(
        pin, recipe=build.recipe, apart_from_runtime=build.apart_from_runtime, runtime=build.runtime
    ):
        yield _changed(address, pin.recipe, f"this definition is {build.recipe[:_SHOWN_DIGITS]}", free)
    elif pin.recipe != build.recipe and not foreign_checkpoints(
        pin, runtime=build.runtime, starts_fresh=build.starts_fresh
    ):
        yield Reminder(
            message=f"{address} is pinned as {pin.recipe[:_SHOWN_DIGITS]} under runtime "
            f"{pin.runtime[:_SHOWN_DIGITS]}, this build is {build.recipe[:_SHOWN_DIGITS]} under "
            f"{build.runtime[:_SHOWN_DIGITS]}: {_PIN}"
        )


def _of_document(subject: PreflightSubject, pin: PinnedVersion, address: str, free: str) -> Iterator[Finding]:
    """Judge a document without its graph by what it says itself."""
    if digest_of(subject.document) == pin.launch:
        return
    if not subject.source_form:
        raise MissingFact("the document in source form: the ledger has no digest of a resolved one")
    recipe = document_recipe(subject.document)
    if recipe == pin.document:
        raise MissingFact(
            "the artifact graph: whether input addresses moved with the cluster or name other content"
        )
    new = f"this document is {recipe[:_SHOWN_DIGITS]}, apart from runtime and placement"
    yield _changed(address, pin.document, new, free)


def _changed(address: str, old: str, new: str, free: str) -> Finding:
    return Finding(
        path="run.id",
        message=f"{address} is pinned as {old[:_SHOWN_DIGITS]}; {new}. What exists under that version would be "
        "taken for this",
        repair=f"give the target another version, such as {free}, or take the change back",
    )


def _address(subject: PreflightSubject) -> tuple[str, str]:
    """Name and version of the RL run, as the experiment has them or else as the document does."""
    run = rl_step(subject)
    return document_address(subject) if run is None else (run.name, run.version)


CHECKS = (art_06, art_13, art_17)
