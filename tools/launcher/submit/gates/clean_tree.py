"""clean-tree: what is launched can be read again from a commit."""

from tools.launcher.documents.printable import printable
from tools.launcher.submit.gates.gate import Gate
from tools.launcher.submit.source_state import SourceState

NAMED_FILES = 5


def clean_tree(source: SourceState) -> Gate:
    """Return the gate for the checkout that the launch comes from."""
    if source.dirty is False:
        return Gate(
            id="clean-tree", state="passed", found=f"nothing differs from commit {source.source_commit}"
        )
    if source.dirty is None:
        why = source.note or "source unknown"
        return Gate(
            id="clean-tree",
            state="missing",
            found=f"{printable(why)}: whether a commit has what is launched is not known",
            fix="launch with `tools/bazel run` from a git checkout, or with --allow-dirty",
        )
    return Gate(
        id="clean-tree",
        state="missing",
        found=f"the checkout differs from commit {source.source_commit}{_named(source)}",
        fix="git commit, then launch again; or launch with --allow-dirty, which is recorded",
    )


def _named(source: SourceState) -> str:
    if not source.changed:
        return ""
    more = len(source.changed) - NAMED_FILES
    named = ", ".join(printable(name) for name in source.changed[:NAMED_FILES])
    return f": {named}" + (f" and {more} more" if more > 0 else "")
