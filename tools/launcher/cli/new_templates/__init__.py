"""What `launcher new` starts from. Each folder here has the three files of an experiment, with `@WORDS@`."""

from pathlib import Path
from typing import NamedTuple

_HERE = Path(__file__).parent

FILES = ("BUILD.bazel", "README.md", "experiment.py")
"""Of every experiment."""


class Template(NamedTuple):
    """A way to start."""

    name: str
    what: str
    """One line of help."""
    may_be_golden: bool = True
    """Whether its document can be pinned under test. A sweep has many, and none of them is."""

    def text(self, file: str) -> str:
        """Return the template of one of FILES."""
        return (_HERE / self.name / f"{file}.template").read_text(encoding="utf-8")


TEMPLATES = {
    template.name: template
    for template in (
        Template("toy", "GRPO on a toy environment, on the local Iris: seconds, no GPU"),
        Template("grpo", "GRPO on GSM8K, one node of 8 H100, all roles on the same GPUs"),
        Template("disaggregated", "GRPO on GSM8K, one node of 8 H100 trains and another generates"),
        Template("sweep", "GRPO on GSM8K over two axes, four points on the local Iris", may_be_golden=False),
    )
}
"""By name, in the order in which a newcomer meets them."""
