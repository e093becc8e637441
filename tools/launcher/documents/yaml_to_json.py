"""Writes a YAML document as JSON, which is read twenty times as fast: yaml_to_json SOURCE OUTPUT

For files that a program ships and reads at each start. Exit status: 0 written, 1 not readable.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.launcher.documents.strict_yaml import DocumentError, load_yaml_mapping


def main(arguments: Sequence[str]) -> int:
    """Write one document and return the exit status."""
    source, output = (Path(argument) for argument in arguments)
    try:
        document = load_yaml_mapping(source.read_bytes(), source=str(source))
    except DocumentError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    output.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
