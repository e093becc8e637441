"""What the builds of several revisions share: results of actions, in a folder of the user's caches."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.launcher.cli.affected_checkout import cache_folder, user_options

# A thousand experiments take some 40 MB for each state of the launcher.
_MOST = "2G"

# `build --disk_cache=…`, or another command's, in a file of options.
_CHOSEN = re.compile(rb"^\s*[\w:-]+\s(?:.*\s)?--disk_cache\b", re.MULTILINE)


def shared_results(workspace: Path, flags: Iterable[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return options by which a build finds what another revision's build has made already.

    A user who has chosen such a folder for all builds keeps it.

    Args:
        workspace: the user's.
        flags: options that were asked for.
        environ: the process environment.
    """
    if any(flag.startswith("--disk_cache") for flag in flags) or _CHOSEN.search(_options(workspace, environ)):
        return ()
    return (
        f"--disk_cache={cache_folder(environ) / 'results'}",
        f"--experimental_disk_cache_gc_max_size={_MOST}",
    )


def _options(workspace: Path, environ: Mapping[str, str]) -> bytes:
    """The user's own options, for this workspace and for all."""
    try:
        everywhere = Path(environ.get("HOME") or "~").expanduser().joinpath(".bazelrc").read_bytes()
    except OSError:
        everywhere = b""
    return everywhere + b"\n" + user_options(workspace)
