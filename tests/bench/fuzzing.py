"""Judging broken documents, and noticing what must not happen: an exception, a slow verdict, a bad report."""

import contextlib
import io
import json
import signal
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType

from tests.bench.broken_documents import BrokenDocuments
from tests.catalogue.catalogue_case import CARDS, all_cases
from tools.launcher.cli.lint_command import judge
from tools.launcher.cli.lint_inputs import LintInputs
from tools.launcher.cli.lint_report import REPORTS, Judged

SLOWEST_ALLOWED = 2.0
"""Seconds of this process for one verdict."""

_HANGS_AFTER = 30
_KEPT_SLOWEST = 3


@dataclass(frozen=True)
class Failure:
    """A document on which `lint` did what it must not."""

    number: int
    problem: str
    data: bytes


@dataclass
class Summary:
    """What came of a number of documents."""

    judged: int = 0
    accepted: int = 0
    unreadable: int = 0
    slowest: list[tuple[float, int]] = field(default_factory=list)
    """Seconds and number of the slowest verdicts, slowest first."""
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: "Summary") -> None:
        """Take in what came of other documents."""
        self.judged += other.judged
        self.accepted += other.accepted
        self.unreadable += other.unreadable
        self.slowest = sorted([*self.slowest, *other.slowest], reverse=True)[:_KEPT_SLOWEST]
        self.failures += other.failures


class _Hang(BaseException):
    """A verdict did not come. Not an Exception, so that nothing on the way takes it for its own."""


def originals() -> list[bytes]:
    """Return the documents of the catalogue."""
    return [case.data() for _, case in all_cases()]


def inputs_to_judge_with() -> list[LintInputs]:
    """Return the cards of calls: none, and each of the catalogue's models with a cluster and a dataset."""
    models = sorted(str(path) for path in CARDS.glob("model.*.yaml"))
    others = {"cluster": "cluster.h100.yaml", "dataset": "dataset.gsm8k.yaml"}
    cards = {kind: [str(CARDS / name)] for kind, name in others.items()}
    none = LintInputs(runtime_manifests=[], model_cards=[], cluster_cards=[], dataset_cards=[])
    return [none] + [
        LintInputs(
            runtime_manifests=[],
            model_cards=[model],
            cluster_cards=cards["cluster"],
            dataset_cards=cards["dataset"],
        )
        for model in models
    ]


def fuzz(documents: BrokenDocuments, numbers: Sequence[int], inputs: Sequence[LintInputs]) -> Summary:
    """Judge the documents of these numbers, each with the cards that follow from its number."""
    summary = Summary()
    for number in numbers:
        data = documents.make(number)
        started = time.process_time()
        try:
            with _alarm():
                judged = judge("broken.yaml", data, inputs[number % len(inputs)])
            problem = _problem_of_report(judged)
        except _Hang:
            judged, problem = None, f"no verdict in {_HANGS_AFTER} s"
        except Exception:  # Whatever it is, it is a finding.
            judged, problem = None, traceback.format_exc()
        took = time.process_time() - started
        if not problem and took > SLOWEST_ALLOWED:
            problem = f"the verdict took {took:.1f} s"
        summary.judged += 1
        if judged is not None:
            summary.accepted += judged.verdict == "accept"
            summary.unreadable += judged.chosen is None
        summary.slowest = sorted([*summary.slowest, (took, number)], reverse=True)[:_KEPT_SLOWEST]
        if problem:
            summary.failures.append(Failure(number, problem, data))
    return summary


def _problem_of_report(judged: Judged) -> str:
    """Say what is wrong with the three forms of a report, "" for nothing. Raises what they raise."""
    texts: dict[str, str] = {}
    for name, write in REPORTS.items():
        printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with contextlib.redirect_stdout(printed):
            write([judged])
        texts[name] = printed.buffer.getvalue().decode("utf-8")
    (entry,) = json.loads(texts["json"])["documents"]
    errors = [item for item in entry["violations"] if item["severity"] == "error"]
    if (entry["verdict"] == "reject") != bool(errors):
        return f"verdict {entry['verdict']} with {len(errors)} errors"
    if not all(item["message"] and item["repair"] for item in entry["violations"]):
        return "a violation without message or repair"
    if len(json.loads(texts["sarif"])["runs"][0]["results"]) != len(entry["violations"]):
        return "SARIF and JSON differ"
    return ""


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    previous = signal.signal(signal.SIGALRM, _raise_hang)
    signal.alarm(_HANGS_AFTER)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def _raise_hang(_: int, __: FrameType | None) -> None:
    raise _Hang
