"""Entry point of an experiment's `:pin`: the command `pin` of the launcher as a program of its own."""

import sys

from tools.launcher.cli.process_boundary import run_as_process


def main() -> int:
    """Run the command line of this process and return its exit status."""
    # Imported inside the boundary, so that Ctrl-C while it loads is no traceback either.
    import argparse

    from absl.flags import argparse_flags

    from tools.launcher.cli import pin_command

    parser = argparse_flags.ArgumentParser(
        prog="pin",
        description=pin_command.DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        inherited_absl_flags=None,
    )
    pin_command.add_arguments(parser)
    return pin_command.run(parser.parse_args(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(run_as_process(main))
