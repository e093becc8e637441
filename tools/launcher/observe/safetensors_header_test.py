import json
import struct
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.launcher.observe.run_testlib import safetensors
from tools.launcher.observe.safetensors_header import TornFile, read_safetensors_header


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_a_whole_file(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(safetensors([1.0, 2.0, 3.0]))
    header = read_safetensors_header(path)
    assert (header.tensors, header.parameters) == (1, 3)


def test_what_the_library_writes_is_whole(tmp_path):
    numpy = pytest.importorskip("numpy")
    library = pytest.importorskip("safetensors.numpy")
    arrays = {
        "b": numpy.zeros((2, 3), numpy.float16),
        "a": numpy.zeros(5, numpy.int8),
        "empty": numpy.zeros(0),
    }
    path = tmp_path / "f"
    library.save_file(arrays, path, metadata={"slipway_rehearsal": "true"})
    header = read_safetensors_header(path)
    assert (header.tensors, header.parameters) == (3, 11)


F32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "expected 8 bytes of header length, seen 0 bytes"),
        (b"1234567", "expected 8 bytes of header length, seen 7 bytes"),
        (struct.pack("<Q", 100) + b"{}", "expected a header of 100 bytes, seen a file of 10 bytes"),
        (b"\xff" * 16, "expected a header of 18446744073709551615 bytes, seen a file of 16 bytes"),
        (file_of(b"not json"), "expected a JSON header of tensors, seen JSONDecodeError"),
        (file_of([]), "expected a JSON header of tensors, seen AttributeError"),
        (file_of({}), "expected at least one tensor, seen none"),
        (file_of({"__metadata__": {}}), "expected at least one tensor, seen none"),
        (file_of({"w": F32}, b"1234567"), "expected 77 bytes, seen 76 bytes"),
        (file_of({"w": F32}, b"123456789"), "expected 77 bytes, seen 78 bytes"),
        (
            file_of({"w": {**F32, "shape": [3]}}, b"12345678"),
            "expected tensor 'w' of 3 elements in bytes 0 to 12",
        ),
        (file_of({"w": {**F32, "data_offsets": [4, 12]}}, b"0" * 12), "in bytes 0 to 8, seen 4 to 12"),
        (file_of({"w": {**F32, "dtype": "F7"}}, b"12345678"), "seen KeyError: 'F7'"),
        (file_of({"w": {**F32, "shape": [-2]}}, b"12345678"), "are not all whole numbers"),
        (file_of({"w": {**F32, "shape": [True]}}, b"12345678"), "are not all whole numbers"),
    ],
)
def test_torn_files_say_how(tmp_path, data, sentence):
    path = tmp_path / "f"
    path.write_bytes(data)
    with pytest.raises(TornFile) as raised:
        read_safetensors_header(path)
    assert sentence in str(raised.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(safetensors([1.0, 2.0])) - 1))
def test_every_truncation_is_seen(tmp_path, length):
    path = tmp_path / "f"
    path.write_bytes(safetensors([1.0, 2.0])[:length])
    with pytest.raises(TornFile):
        read_safetensors_header(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_noise_never_crashes(tmp_path, data):
    path = tmp_path / "f"
    path.write_bytes(struct.pack("<Q", len(data)) + data)
    with pytest.raises(TornFile):
        read_safetensors_header(path)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
