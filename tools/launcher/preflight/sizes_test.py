"""Sizes are read as Iris reads them."""

import sys

import humanfriendly
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.launcher.preflight.sizes import GIB, in_gib, size_of, size_text


def _iris(text: str) -> int | None:
    """What `parse_memory_string` of marin-iris does with a text that is not blank."""
    try:
        return int(humanfriendly.parse_size(text.strip(), binary=True))
    except humanfriendly.InvalidSize:
        return None


@pytest.mark.parametrize(
    ("text", "gib"),
    [
        ("700GB", 700),
        ("700Gi", 700),
        ("700GiB", 700),
        ("700 GB", 700),
        ("700gb", 700),
        (" 700 gazillion ", 700),
        ("4TB", 4096),
        ("1.5TB", 1536),
        ("1024MB", 1),
        ("1073741824", 1),
        ("1073741824 bytes", 1),
        ("0GB", 0),
        ("0", 0),
    ],
)
def test_known_sizes(text: str, gib: int) -> None:
    size = size_of(text)
    assert size is not None and size.bytes == gib * GIB == _iris(text)


@pytest.mark.parametrize(
    "text", ["", " ", "lots", "auto", "TB", "-5GB", "7e2GB", "1.5.2GB", "1 2", "7s", "7x", "9" * 50]
)
def test_what_is_no_size(text: str) -> None:
    assert size_of(text) is None
    assert len(text) > 40 or not text.strip() or _iris(text) is None


_NUMBERS = st.from_regex(r"\A[0-9]{1,12}(\.[0-9]{1,4})?\Z")
_UNITS = st.sampled_from(
    ["", "B", "KB", "MiB", "Gi", "gb", "TB", "Petabytes", "E", "s", "x", "gs", "ss", "b "]
)


@given(number=_NUMBERS, space=st.sampled_from(["", " ", "\t"]), unit=_UNITS | st.text(max_size=6))
def test_every_size_is_read_as_iris_reads_it(number: str, space: str, unit: str) -> None:
    text = f"{number}{space}{unit}"
    size = size_of(text)
    assert (size.bytes if size is not None else None) == _iris(text)


@given(st.text(max_size=12))
def test_every_text_is_read_as_iris_reads_it(text: str) -> None:
    size = size_of(text)
    assert (size.bytes if size is not None else None) == _iris(text)


@given(number=st.integers(1, 10**6), unit=st.sampled_from(["KB", "MB", "GB", "TB"]))
def test_the_meaning_writes_the_same_size(number: int, unit: str) -> None:
    size = size_of(f"{number}{unit}")
    assert size is not None and size_of(f"{size.number}{size.meaning}") == size._replace(unit=size.meaning)


def test_what_the_launcher_takes_for_text() -> None:
    assert (size_text("700GB"), size_text(700), size_text(1.5)) == ("700GB", "700", "1.5")
    values: tuple[object, ...] = (None, True, [], {}, 10**5000)
    assert [size_text(value) for value in values] == [None] * 5


def test_sizes_in_messages_are_told_apart() -> None:
    assert (in_gib(2014 * GIB), in_gib(28610.56 * GIB), in_gib(700)) == (
        "2014 GiB",
        "28610.56 GiB",
        "6.519258e-07 GiB",
    )


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
