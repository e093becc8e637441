"""Finding values wherever they are, however they are written."""

import base64
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path


class Finder:
    """Finds random values by their cores: letters and digits, which no way of quoting changes."""

    def __init__(self, cores: dict[str, str]) -> None:
        """Prepare for `cores`: name of a credential -> the random middle of its value, in ASCII letters."""
        self._forms = [
            (f"{name} {how}", form) for name, core in cores.items() for how, form in _forms_of(core.encode())
        ]

    def in_bytes(self, data: bytes, place: str) -> list[str]:
        """Return what was found in some bytes, as sentences."""
        return [f"{found} in {place}" for found, form in self._forms if form in data]

    def in_file(self, path: Path) -> list[str]:
        """Return what was found in a file, its name, and the members of it if it is a zip."""
        found = self.in_bytes(str(path).encode(errors="surrogateescape"), f"the name {path}")
        try:
            data = bytes(path.readlink()) if path.is_symlink() else path.read_bytes()
        except FileNotFoundError:  # A temporary file of somebody at work.
            return found
        found += self.in_bytes(data, str(path))
        if data.startswith(b"PK") and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for member in archive.namelist():
                    found += self.in_bytes(archive.read(member), f"{path}:{member}")
        return found

    def below(self, folder: Path) -> tuple[int, list[str]]:
        """Return how many files and links lie below a folder, and what was found in them."""
        files = list(files_below(folder))
        return len(files), [sentence for path in files for sentence in self.in_file(path)]


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files and links below a folder, also while others remove some."""
    for root, folders, names in os.walk(folder):
        links = (name for name in folders if (Path(root) / name).is_symlink())
        for name in (*links, *names):
            path = Path(root) / name
            if path.is_symlink() or path.is_file():
                yield path


def _forms_of(core: bytes) -> Iterator[tuple[str, bytes]]:
    yield "as it is", core
    yield "backwards", core[::-1]
    yield "in hex", core.hex().encode()
    yield "in capital hex", core.hex().upper().encode()
    yield "in UTF-16", core.decode().encode("utf-16-le")
    # Three ways to be cut into groups of three bytes; the groups at the ends depend on what stands beside.
    for offset in range(3):
        whole = core[offset : offset + (len(core) - offset) // 3 * 3]
        yield f"in base64 ({offset})", base64.b64encode(whole)
        yield f"in URL-safe base64 ({offset})", base64.urlsafe_b64encode(whole)
