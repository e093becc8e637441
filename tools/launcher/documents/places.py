"""Where in a YAML text a path of the document stands."""

import re

import yaml

_INDEX = re.compile(r"\[(\d+)\]")


class Places:
    """The lines and columns of one document's values, for reports that point into the file."""

    def __init__(self, data: bytes) -> None:
        """Read the positions of `data`, which `load_yaml` accepted."""
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._root = yaml.compose(data.decode("utf-8-sig"), Loader=loader)

    def find(self, path: str) -> tuple[int, int] | None:
        """Return line and column (from 1) of a path such as `inputs.train_data[0].uri`.

        Of a path that the document does not hold, the place is that of the nearest mapping
        around it; None if not even its section is there.
        """
        node, mark, rest = self._root, None, path
        while rest and node is not None:
            step = _step(node, rest)
            if step is None:
                break
            mark, node, rest = step
        return None if mark is None else (mark.line + 1, mark.column + 1)


def _step(node: yaml.Node, path: str) -> tuple[yaml.Mark, yaml.Node, str] | None:
    """Go one key or index down: (where it stands, its value, the rest of the path)."""
    if isinstance(node, yaml.MappingNode):
        # A key may hold dots, so the longest that fits is taken.
        keys = sorted(node.value, key=lambda pair: -len(str(pair[0].value)))
        for key, value in keys:
            if path == key.value or (path.startswith(str(key.value)) and path[len(key.value)] in ".["):
                return key.start_mark, value, path[len(key.value) :].removeprefix(".")
    elif isinstance(node, yaml.SequenceNode) and (index := _INDEX.match(path)):
        number = int(index[1])
        if number < len(node.value):
            item = node.value[number]
            return item.start_mark, item, path[index.end() :].removeprefix(".")
    return None
