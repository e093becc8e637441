"""Entry point of `//tools/launcher:lint`: the command `lint` of the launcher as a program of its own."""

import gc
import sys

from tools.launcher.cli.process_boundary import run_as_process


def main() -> int:
    """Run the command line of this process and return its exit status."""
    # Nothing that is imported becomes garbage; looking for it takes a tenth of the start.
    gc.disable()
    # Imported inside the boundary, so that Ctrl-C while it loads is no traceback either.
    import argparse

    from absl.flags import argparse_flags

    from tools.launcher.cli import lint_command

    gc.freeze()
    gc.enable()
    parser = argparse_flags.ArgumentParser(
        prog="lint",
        description=lint_command.DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        inherited_absl_flags=None,
    )
    lint_command.add_arguments(parser)
    return lint_command.run(parser.parse_args(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(run_as_process(main))
