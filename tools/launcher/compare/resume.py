"""What a launch of the second document does with checkpoints of the first."""

from tools.launcher.compare.identity import IdentityChange
from tools.launcher.compare.side import Side
from tools.launcher.compare.verdicts import Consequence
from tools.launcher.graph.versions import is_mutable

_SHORT = 8


def resume_consequence(a: Side, b: Side, identity: IdentityChange, same_split: bool) -> Consequence:
    """Say whether `b` goes on from the checkpoints of `a`, starts at step 0, or is refused.

    The rules are those of the version ledger (ART-06, ART-17) and of the coordinator, which claims an output
    path for one fingerprint before a checkpoint is read (docs/versions.md).

    Args:
        a, b: the launches.
        identity: what became of the recipe.
        same_split: whether policy and optimizer are cut into the same parts.
    """
    if b.starts_fresh:
        return _fresh(f"B starts at step 0 (resume_mode {b.resume_mode}) and reads no checkpoint")
    if b.resume_mode == "from_path":
        path = b.subject.get("skyrl.trainer.resume_path")
        return Consequence(
            aspect="resume",
            verdict="not_known",
            sentence=f"B reads {path}, as it says (resume_mode from_path); whether that fits is not known",
        )
    if not isinstance(a.checkpoint_root, str) or not isinstance(b.checkpoint_root, str):
        return Consequence(
            aspect="resume",
            verdict="not_known",
            sentence="not known: needs artifacts.checkpoint_root of both",
        )
    if a.checkpoint_root != b.checkpoint_root:
        return _fresh(
            "B has a checkpoint root of its own and starts at step 0; it never sees A's checkpoints"
        )
    if not identity.changed:
        return Consequence(
            aspect="resume",
            verdict="safe",
            sentence="safe: B goes on from A's checkpoints, the recipe is the same",
        )
    if a.recipe in b.compatible:
        return Consequence(
            aspect="resume",
            verdict="safe",
            sentence="safe: another recipe, but the version ledger lets B go on from A's checkpoints",
        )
    return Consequence(aspect="resume", verdict="refused", sentence=_refusal(a, b, identity, same_split))


def _fresh(sentence: str) -> Consequence:
    return Consequence(aspect="resume", verdict="fresh", sentence=sentence)


def _refusal(a: Side, b: Side, identity: IdentityChange, same_split: bool) -> str:
    version = b.address[1] if b.address is not None else "this version"
    if identity.only_runtime:
        old, new = (str(side.subject.get("runtime.launcher_commit"))[:_SHORT] for side in (a, b))
        return (
            f"refused under {version}: checkpoints are of runtime {old}, B runs {new} (ART-06), unless the "
            "ledger says `checkpoints: compatible`; a new version starts at step 0"
        )
    split = "" if same_split else ", and whether the trainer could load A's other split is not known"
    who = "the coordinator refuses" if is_mutable(version) else "ART-17 and the coordinator refuse"
    return (
        f"refused under {version}: {who} A's checkpoints for another recipe; "
        f"a new version starts at step 0{split}"
    )
