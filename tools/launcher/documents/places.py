"""Where in a YAML text a path of the document stands."""

import re

import yaml

from tools.launcher.documents.strict_yaml import compose_yaml

_INDEX = re.compile(r"\[(\d{1,9})\]")
_END_OF_KEY = re.compile(r"[.\[]")


class Places:
    """The lines and columns of one document's values, for reports that point into the file."""

    def __init__(self, data: bytes) -> None:
        """Read the positions of `data`, which `load_yaml` accepted."""
        self._entries: dict[int, dict[str, tuple[yaml.Node, yaml.Node]]] = {}
        self._root = compose_yaml(data)

    def find(self, path: str) -> tuple[int, int] | None:
        """Return line and column (from 1) of a path such as `inputs.train_data[0].uri`.

        Of a path that the document does not hold, the place is that of the nearest mapping
        around it; None if not even its section is there.
        """
        node, mark, rest = self._root, None, path
        while rest and node is not None:
            step = self._step(node, rest)
            if step is None:
                break
            mark, node, rest = step
        return None if mark is None else (mark.line + 1, mark.column + 1)

    def _step(self, node: yaml.Node, path: str) -> tuple[yaml.Mark, yaml.Node, str] | None:
        """Go one key or index down: (where it stands, its value, the rest of the path)."""
        if isinstance(node, yaml.MappingNode):
            entries = self._entries_of(node)
            # A key may hold dots, so the longest that fits is taken.
            ends = [len(path), *(match.start() for match in _END_OF_KEY.finditer(path))]
            for end in sorted(ends, reverse=True):
                if path[:end] in entries:
                    key, value = entries[path[:end]]
                    return key.start_mark, value, path[end:].removeprefix(".")
        elif isinstance(node, yaml.SequenceNode) and (index := _INDEX.match(path)):
            number = int(index[1])
            if number < len(node.value):
                item = node.value[number]
                return item.start_mark, item, path[index.end() :].removeprefix(".")
        return None

    def _entries_of(self, node: yaml.MappingNode) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Key -> (key, value), made once: a document can have thousands of findings in one mapping."""
        if id(node) not in self._entries:
            self._entries[id(node)] = {str(key.value): (key, value) for key, value in node.value}
        return self._entries[id(node)]
