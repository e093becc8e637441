"""What a launch of the second document does with checkpoints of the first."""

from tools.launcher.compare.identity import IdentityChange
from tools.launcher.compare.side import Side
from tools.launcher.compare.verdicts import Consequence, Verdict
from tools.launcher.compare.wording import brief, named
from tools.launcher.graph.versions import is_mutable

_SHORT = 8


def resume_consequence(a: Side, b: Side, identity: IdentityChange, same_split: bool) -> Consequence:
    """Say whether `b` goes on from the checkpoints of `a`, starts at step 0, or is refused.

    The rules are those of the version ledger (ART-06, ART-17), of the claims in the store, and of the
    coordinator, which claims an output path for one fingerprint before a checkpoint is read (docs/versions.md).
    They hold for a run that reads no checkpoint, too.

    Args:
        a, b: the launches.
        identity: what became of the recipe.
        same_split: whether policy and optimizer are cut into the same parts.
    """
    if _takes_anothers_place(a, b, identity):
        return _said("refused", _refusal(a, b, identity, same_split))
    if b.starts_fresh:
        return _said("fresh", f"B starts at step 0 (resume_mode {b.resume_mode}) and reads no checkpoint")
    if b.resume_mode == "from_path":
        return _said(
            "not_known",
            f"B reads {_path(b)}, as it says (resume_mode from_path); whether that fits is not known",
        )
    if not isinstance(a.checkpoint_root, str) or not isinstance(b.checkpoint_root, str):
        return _said("not_known", "not known: needs artifacts.checkpoint_root of both")
    if a.checkpoint_root != b.checkpoint_root:
        return _said(
            "fresh", "B has a checkpoint root of its own and starts at step 0; it never sees A's checkpoints"
        )
    if a.recipe is not None and a.recipe in b.compatible:
        return _said("safe", "safe: another recipe, but the version ledger lets B go on from A's checkpoints")
    if identity.changed and (a.address is None or b.address is None):
        return _said("not_known", "not known: needs run.id of both")
    if identity.changed:
        return _said(
            "not_known",
            "B is another run with A's checkpoint root, and nothing keeps it from A's checkpoints; whether they fit "
            "is not known",
        )
    if identity.unsure:
        return _said(
            "not_known", f"not known: needs both graphs, whether {named(identity.unsure)} names other content"
        )
    return _said("safe", "safe: B goes on from A's checkpoints, the recipe is the same")


def _takes_anothers_place(a: Side, b: Side, identity: IdentityChange) -> bool:
    """Whether `b` is another recipe under the version of `a`, without leave."""
    if not identity.changed or a.address is None or a.address != b.address:
        return False
    if a.recipe is not None and a.recipe in b.compatible:
        return False
    if is_mutable(a.address[1]):
        return bool(a.output == b.output)  # No ledger and no claim has it: only its path is claimed.
    # Of documents alone it is not known what the ledger lets a fresh start replace.
    return not (b.starts_fresh and identity.only_runtime and identity.basis == "documents")


def _refusal(a: Side, b: Side, identity: IdentityChange, same_split: bool) -> str:
    version = brief(b.address[1]) if b.address is not None else "this version"
    if identity.only_runtime and not is_mutable(version):
        old, new = (str(side.subject.get("runtime.launcher_commit"))[:_SHORT] for side in (a, b))
        leave = "has A pinned" if b.starts_fresh else "says `checkpoints: compatible`"
        return (
            f"refused under {version}: checkpoints are of runtime {old}, B runs {new} (ART-06), unless the "
            f"ledger {leave}; a new version starts at step 0"
        )
    who = "the coordinator refuses" if is_mutable(version) else "ART-17 and the coordinator refuse"
    if b.resume_mode == "from_path":
        return f"refused under {version}: {who} another recipe than A's; a new version reads {_path(b)}"
    if b.starts_fresh or a.checkpoint_root != b.checkpoint_root:
        return f"refused under {version}: {who} another recipe than A's; a new version starts at step 0"
    split = "" if same_split else ", and whether the trainer could load A's other split is not known"
    return (
        f"refused under {version}: {who} A's checkpoints for another recipe; "
        f"a new version starts at step 0{split}"
    )


def _path(b: Side) -> str:
    path = b.subject.get("skyrl.trainer.resume_path")
    return brief(path) if isinstance(path, str) and path else "no path that its resume_path names"


def _said(verdict: Verdict, sentence: str) -> Consequence:
    return Consequence(aspect="resume", verdict=verdict, sentence=sentence)
