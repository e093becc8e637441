"""The action of a digest_manifest target: the digests of its experiments as one file."""

import sys
from pathlib import Path

from absl.flags import argparse_flags

from tools.launcher.cli.affected_outputs import digests_of_outputs
from tools.launcher.compare.digest_manifest import DigestManifest, dump_manifest


def main(arguments: list[str]) -> int:
    """Write the manifest; `--digest=LABEL=FILE` and `--graph=LABEL=FILE` stand once for each experiment."""
    parser = argparse_flags.ArgumentParser(fromfile_prefix_chars="@", inherited_absl_flags=None)
    parser.add_argument("--digest", action="append", default=[])
    parser.add_argument("--graph", action="append", default=[])
    parser.add_argument("--out", required=True, type=Path)
    flags = parser.parse_args(arguments)
    digests, graphs = _by_label(flags.digest), _by_label(flags.graph)
    manifest = DigestManifest(
        schema=1,
        experiments={
            label: digests_of_outputs(file.read_bytes(), graphs[label].read_bytes())
            for label, file in digests.items()
        },
    )
    flags.out.write_bytes(dump_manifest(manifest))
    return 0


def _by_label(pairs: list[str]) -> dict[str, Path]:
    return {label: Path(file) for label, _, file in (pair.partition("=") for pair in pairs)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
