"""What is said of an experiment that is refused."""

import json

from tools.launcher.cli.experiment_module import ExperimentError
from tools.launcher.cli.judge_experiment import PreflightFailed
from tools.launcher.documents.printable import printable
from tools.launcher.documents.strict_yaml import DocumentError
from tools.launcher.preflight.render_text import report_json, report_text
from tools.launcher.rl.build_options import BuildOptionError

Refusal = PreflightFailed | ExperimentError | BuildOptionError | DocumentError
REFUSALS = (PreflightFailed, ExperimentError, BuildOptionError, DocumentError)
"""Errors that say what is wrong with an experiment, and no more than that."""


def refusal_text(refusal: Refusal, label: str) -> str:
    """Return every violation as lines of text, or the one error that came before any check."""
    if isinstance(refusal, PreflightFailed):
        return report_text(refusal.report, subject=label)
    lines = f"error: {label}: {refusal}".split("\n")  # line ends stay
    return "".join(f"{printable(line)}\n" for line in lines)


def refusal_json(refusal: Refusal, label: str) -> str:
    """Return the same as one JSON object."""
    if isinstance(refusal, PreflightFailed):
        content = {"experiment": label, **report_json(refusal.report)}
    else:
        content = {"experiment": label, "verdict": "reject", "violations": [], "error": str(refusal)}
    return json.dumps(content, indent=2) + "\n"
