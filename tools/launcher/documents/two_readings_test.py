"""Values that depend on the version of YAML: found where they stand, and nothing else."""

import sys
import time

import pytest

from tools.launcher.documents.two_readings import MOST, Reading, two_readings


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("No", False),
        ("ON", True),
        ("off", False),
        ("86_400", 86400),
        ("-1_0", -10),
        ("0x1F", 31),
        ("021", 17),
        ("0o21", "0o21"),
        ("08", "08"),
        ("0b1000", 8),
        ("1:00:00", 3600),
        ("1:30.5", 90.5),
        ("1_0.5", 10.5),
        ("1.5_0", 1.5),
    ],
)
def test_a_value_with_two_readings_is_found(text, value):
    assert two_readings(f"a:\n- b: {text} # why\n".encode()) == (Reading("a[0].b", text, value),)
    assert two_readings(f"{{a: [{text}]}}".encode()) == (Reading("a[0]", text, value),)
    assert two_readings(text.encode()) == (Reading("", text, value),)
    for quoted in (f"a: '{text}'", f'a: "{text}"', f"a: |\n  {text}\n", f"# {text}\na: x", f"a: x {text} y"):
        assert two_readings(quoted.encode()) == ()


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "8",
        "+8",
        "-3",
        "1.5",
        "1e-6",
        "1E3",
        "true",
        "FALSE",
        "~",
        "null",
        "y",
        "n",
        "yEs",
        "2026-01-15",
        "2026.01.15",
        "01:30",
        "1:99",
        "0b12",
        "0.5",
        "700GB",
        "81ae0ef7033c500207b191a2ae7c3806f6dc78ff",
        "1_a",
        ".5",
        "tests/x@2026.09.01:1512",
        "onto",
        "note",
        "10:00-12:00",
    ],
)
def test_what_both_read_alike_is_left_alone(text):
    assert two_readings(f"a: {text}\nb: [{text}]\n".encode()) == ()


def test_of_a_shared_value_the_first_place_is_named():
    data = b"a: &x {k: yes}\nb: *x\nc: {<<: *x, on: off}\n"
    assert [reading.path for reading in two_readings(data)] == ["a.k", "c.on"]


def test_many_readings_are_cut():
    assert len(two_readings(b"- yes\n" * 1000)) == MOST


@pytest.mark.parametrize("piece", [b" yes ", b" 0_", b" 0_0:", b" 99999", b"1", b"0_0:"])
def test_a_huge_text_is_searched_at_once(piece):
    data = b'a: "' + piece * ((8 << 20) // len(piece)) + b'"'
    started = time.process_time()
    assert two_readings(data) == ()
    assert time.process_time() - started < 3


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
