"""The parser of a program's flags where each millisecond of its start counts."""

import argparse


def flag_parser(prog: str, description: str) -> argparse.ArgumentParser:
    """Return what `absl.flags.argparse_flags` makes for a program without absl flags.

    Importing absl.flags takes as long as starting Python twice, and serves flags that any module may define;
    no module of ours does. A test holds this to absl's own parser: the same help and the same answers.

    Args:
        prog: how usage and errors call the program.
        description: shown as it is written.
    """
    parser = argparse.ArgumentParser(
        prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--helpshort", action="help", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument(
        "--helpfull", action="help", default=argparse.SUPPRESS, help="show full help message and exit"
    )
    return parser
