"""Some hundred broken documents, always the same: the bench works, and lint survives them."""

import sys

import pytest

from tests.bench import fuzzing
from tests.bench.broken_documents import BrokenDocuments
from tests.bench.fuzzing import Summary, fuzz, inputs_to_judge_with, originals

DOCUMENTS = 120


@pytest.fixture(scope="module")
def sources() -> list[bytes]:
    return originals()


@pytest.fixture(scope="module")
def documents(sources: list[bytes]) -> BrokenDocuments:
    return BrokenDocuments(sources, seed=7)


def test_lint_survives_broken_documents(documents: BrokenDocuments) -> None:
    summary = fuzz(documents, range(DOCUMENTS), inputs_to_judge_with())
    assert not summary.failures, [failure.problem for failure in summary.failures]
    assert summary.judged == DOCUMENTS
    # Of each kind enough: documents that are accepted, that a check refuses, and that cannot be read.
    assert summary.accepted > 2
    assert 10 < summary.unreadable < DOCUMENTS / 2


def test_a_number_is_always_the_same_document(documents: BrokenDocuments, sources: list[bytes]) -> None:
    again = BrokenDocuments(sources, seed=7)
    assert [documents.make(number) for number in (5, 1, 5)] == [again.make(number) for number in (5, 1, 5)]
    assert documents.make(5) != documents.make(6)
    assert documents.make(5) != BrokenDocuments(sources, seed=8).make(5)


def test_an_exception_is_a_failure(documents: BrokenDocuments, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise KeyError("seed")

    monkeypatch.setattr(fuzzing, "judge", breaks)
    summary = Summary()
    summary.add(fuzz(documents, [3], inputs_to_judge_with()))
    (failure,) = summary.failures
    assert failure.data == documents.make(3)
    assert "KeyError: 'seed'" in failure.problem


def test_a_slow_verdict_is_a_failure(documents: BrokenDocuments, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "SLOWEST_ALLOWED", 0.0)
    (failure,) = fuzz(documents, [3], inputs_to_judge_with()).failures
    assert "the verdict took" in failure.problem


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
