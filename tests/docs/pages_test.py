"""The pages for people: sentences that the programs say, commands and flags that exist."""

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import commands, documents
from tests.docs.workflow import FILE as WORKFLOW
from tools.launcher.cli.commands import COMMANDS
from tools.launcher.cli.completion_words import command_words

OPERATOR = Path("docs/operator.md")
WORDS = {command.name: command for command in command_words()}
LAUNCHER = re.compile(r"//tools/launcher -- ([\w-]+)((?: [^\n`|>]+)?)")
FLAG = re.compile(r"(?<!\S)(--[\w-]+)")


def constants() -> str:
    """Every text of the launcher's modules, each on a line of its own; of f-strings, the parts."""
    found: list[str] = []
    for file in sorted(Path("tools/launcher").rglob("*.py")):
        if not file.stem.endswith(("_test", "_testlib", "_for_test")):
            found += [
                node.value
                for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            ]
    return "\n".join(found)


SAID = constants()


def quoted_sentences() -> list[str]:
    """The first cells of the incident tables."""
    after = OPERATOR.read_text(encoding="utf-8").partition("## When something is wrong")[2]
    return re.findall(r"^\| `([^`]+)`", after, re.MULTILINE)


def test_there_are_incidents():
    assert len(quoted_sentences()) >= 20


@pytest.mark.parametrize("sentence", quoted_sentences())
def test_a_sentence_of_the_incident_page_is_said_by_the_launcher(sentence):
    for part in sentence.split("…"):
        if len(part.strip()) > 1:
            assert part.strip() in SAID, part


def launcher_calls() -> list[tuple[str, str, str]]:
    """(document, command, the rest of the line), wherever a document names a command."""
    pages = [*documents(Path()), WORKFLOW]
    return sorted(
        {(str(page), *call) for page in pages for call in LAUNCHER.findall(page.read_text(encoding="utf-8"))}
    )


@pytest.mark.parametrize(("page", "command", "rest"), launcher_calls())
def test_commands_and_flags_that_pages_name_exist(page, command, rest):
    assert command in COMMANDS, f"{page}: {command}"
    known = {word.name for word in WORDS[command].flags}
    unknown = [flag for flag in FLAG.findall(rest.partition(" #")[0]) if flag not in known]
    assert unknown == [], f"{page}: {command}{rest}"


def test_queries_are_one_line_each_and_every_page_is_linked():
    assert all(command.startswith("tools/bazel ") for command in commands(Path("docs/queries.md")))
    linked = "".join(page.read_text(encoding="utf-8") for page in documents(Path()))
    for name in (
        "researcher",
        "operator",
        "maintainer",
        "from-marin",
        "scope",
        "queries",
        "comfort",
        "sweeps",
    ):
        assert f"{name}.md)" in linked, name


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
