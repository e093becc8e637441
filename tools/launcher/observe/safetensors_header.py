"""Checking a safetensors file by its header, with the standard library only.

Format: 8 bytes length of the header (little endian), a JSON header that gives each tensor's type, shape
and byte
range, then exactly the bytes the ranges cover (https://github.com/huggingface/safetensors#format).
"""

import json
import math
import struct
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

# The reference implementation refuses longer headers.
MAX_HEADER_BYTES: Final = 100_000_000

_BITS: Final = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64,
}  # fmt: skip


class TornFile(Exception):
    """A safetensors file is cut short or damaged. `expected` and `seen` say how."""

    def __init__(self, expected: str, seen: str) -> None:
        self.expected, self.seen = expected, seen
        super().__init__(f"expected {expected}, seen {seen}")


class SafetensorsHeader(BaseModel):
    """What the header promises, after the file was found to keep it.

    Attributes:
        tensors: how many.
        parameters: sum of the elements of all tensors.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    tensors: int
    parameters: int


def read_safetensors_header(path: Path) -> SafetensorsHeader:
    """Read the header of `path` and check that the file is whole: no tensor data is read.

    Raises:
        TornFile: the header is cut short or no JSON, a range does not fit its type and shape, ranges leave a
            gap, the file is shorter or longer than they say, or there is no tensor.
        OSError: as the operating system gives it.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        prefix = file.read(8)
        if len(prefix) < 8:
            raise TornFile("8 bytes of header length", f"{size} bytes")
        (length,) = struct.unpack("<Q", prefix)
        if length > MAX_HEADER_BYTES or 8 + length > size:
            raise TornFile(f"a header of {length} bytes", f"a file of {size} bytes")
        data = file.read(length)
    try:
        header = json.loads(data)
        ranges = [(name, *_tensor_of(entry)) for name, entry in header.items() if name != "__metadata__"]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise TornFile("a JSON header of tensors", f"{type(error).__name__}: {error}") from None
    if not ranges:
        raise TornFile("at least one tensor", "none")
    end = 0
    for name, elements, byte_count, start, stop in sorted(ranges, key=lambda item: item[3]):
        if start != end or stop - start != byte_count:
            raise TornFile(
                f"tensor {name!r} of {elements} elements in bytes {end} to {end + byte_count}",
                f"{start} to {stop}",
            )
        end = stop
    if 8 + length + end != size:
        raise TornFile(f"{8 + length + end} bytes", f"{size} bytes")
    return SafetensorsHeader(tensors=len(ranges), parameters=sum(item[1] for item in ranges))


def _tensor_of(entry: Any) -> tuple[int, int, int, int]:
    """Elements, bytes, start and stop of one header entry."""
    start, stop = entry["data_offsets"]
    shape = entry["shape"]
    if not all(type(number) is int and number >= 0 for number in (start, stop, *shape)):
        raise ValueError(f"shape {shape} and offsets {start}, {stop} are not all whole numbers")
    elements = math.prod(shape)
    return elements, elements * _BITS[entry["dtype"]] // 8, start, stop
