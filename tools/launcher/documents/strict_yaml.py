"""Reading YAML from people: safe types only, no repeated keys, bounded in every direction.

Numbers follow what the MarinSkyRL launcher reads (OmegaConf's resolver): `1e-6` is a float
although YAML 1.1 asks for a dot (contract, case n206). The C parser of PyYAML is used when
it is there; both parsers build the same values because the constructor is the same.
"""

import re
from typing import Any

import yaml

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# A float for the launcher's reader, text for YAML 1.1. The writer quotes such text.
EXPONENT_WITHOUT_DOT = re.compile(r"^[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$")

# A launch document has about 4 KB, and the launcher reads any size. The worst 16 MiB, a scalar with one wide
# character, take half a second and 150 MB.
MAX_BYTES = 16 << 20
MAX_DEPTH = 60
MAX_NODES = 50_000  # Counted with every alias expanded, so that nine times nine aliases cannot hide.
MAX_NUMBER = 400  # Characters. Reading a number takes the square of its length; 1e308 written out has 309.
MAX_TEXT = 1 << 20  # Characters of one value: no path, name or variable has as many.
MAX_TAG_DIRECTIVES = 20  # Reading them takes the square of their count.

# The numbers of YAML 1.1 without backtracking: the resolver's own patterns take 60 bytes for each character
# of `1:1:1…`.
_LONG_NUMBER = re.compile(
    r"[-+]?+(?:0b[01_]++|0x[0-9a-fA-F_]++|\.[0-9][0-9_]*+(?:[eE][-+]?[0-9]++)?+"
    r"|[0-9][0-9_]*+(?::[0-5]?[0-9])*+(?:\.[0-9_]*+)?+(?:[eE][-+]?[0-9]++)?+)"
)

_TAG = "tag:yaml.org,2002:"
_TEXT = _TAG + "str"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_SHOWN_CHARACTERS = 200  # Of a parser's message, which may quote the whole file.


class DocumentError(ValueError):
    """A document cannot be read.

    Attributes:
        source: file name or other origin, as given by the caller.
        place: line and column (from 1) or "" where there is none.
        problem: what is wrong, with the value seen.
        fix: what to do about it.
    """

    def __init__(self, source: str, place: str, problem: str, fix: str) -> None:
        self.source, self.place, self.problem, self.fix = source, place, problem, fix
        where = f"{source}:{place}" if place else source
        super().__init__(f"{where}: {problem}. {fix}")


class UnquotedKey(str):
    """The text of a key that is written as a number or a boolean.

    The launcher's reader takes such a key where any mapping may stand, and refuses it where a
    schema has text for keys. It equals the same key in quotes, which is no second key.
    """

    __slots__ = ()


class _StrictLoader(_Base):  # type: ignore[misc]  # which base depends on the machine
    """PyYAML's safe loader which refuses repeated keys."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """Find the tag of a node without one: PyYAML's rule for values, in bounded memory."""
        if kind is not yaml.ScalarNode:
            return super().resolve(kind, value, implicit)
        if implicit[0]:
            if len(value) > MAX_NUMBER:
                return _TAG + ("float" if _LONG_NUMBER.fullmatch(value) else "str")
            for tag, pattern in self.yaml_implicit_resolvers.get(value[:1], ()):
                if pattern.match(value):
                    return tag
        return _TEXT


def load_yaml(data: bytes, *, source: str) -> Any:
    """Read exactly one YAML document.

    Args:
        data: the bytes of the file, UTF-8 with or without a byte order mark.
        source: how messages call the document.

    Returns:
        dicts with text for keys (see `UnquotedKey`), lists and scalars. Merge keys (`<<`) are carried out.
        Equal input gives equal output with both parsers of PyYAML.

    Raises:
        DocumentError: not UTF-8, empty, larger than MAX_BYTES, deeper than MAX_DEPTH, more than
            MAX_NODES values, a number longer than MAX_NUMBER, repeated keys, keys that are no scalar,
            unknown tags, several documents, or bad syntax.
    """
    if len(data) > MAX_BYTES:
        raise too_large(source, str(len(data)))
    try:
        data.decode()  # Only to know that it is text: the parser wants bytes.
    except UnicodeDecodeError as error:
        raise DocumentError(
            source, "", f"byte {error.start} is not UTF-8 text", "Save the file with UTF-8 encoding"
        ) from None
    text = data.removeprefix(_BYTE_ORDER_MARK)
    if text.count(b"%TAG") > MAX_TAG_DIRECTIVES:
        raise DocumentError(
            source, "", f"more than {MAX_TAG_DIRECTIVES} %TAG directives", "Remove them: no tag is read"
        )
    try:
        _check_bounds(text, source)
        loader = _StrictLoader(text)
        try:
            value = loader.get_single_data()
        finally:
            loader.dispose()
    except DocumentError:
        raise
    except _ValueProblem as error:
        raise DocumentError(source, error.place, error.problem, error.fix) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = _place_of(mark)
        problem = " ".join(part for part in (error.context, error.problem) if part) or "not YAML"
        raise DocumentError(source, place, _cut(problem), "Correct the YAML at that place") from None
    except yaml.YAMLError as error:
        raise DocumentError(
            source, "", _cut(f"not YAML: {' '.join(str(error).split())}"), "Correct the file"
        ) from None
    except RecursionError:
        raise DocumentError(
            source, "", f"values are nested more than {MAX_DEPTH} deep", "Flatten the document"
        ) from None
    return value


def load_yaml_mapping(data: bytes, *, source: str) -> dict[str, Any]:
    """Like `load_yaml`, for documents whose top level must be a mapping.

    Raises:
        DocumentError: as `load_yaml`, and for any other top level.
    """
    value = load_yaml(data, source=source)
    if not isinstance(value, dict):
        seen = "empty" if value is None else f"a {type(value).__name__}"
        raise DocumentError(source, "", f"the document is {seen}, not a mapping", "Write `key: value` lines")
    return value


def too_large(source: str, size: str) -> DocumentError:
    """Return the error for a file of `size` bytes, which is a number or words."""
    return DocumentError(
        source, "", f"the file has {size} bytes, the limit is {MAX_BYTES}", "Give one launch document"
    )


def _place_of(mark: Any) -> str:
    return f"{mark.line + 1}:{mark.column + 1}" if mark else ""


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


class _ValueProblem(Exception):
    def __init__(self, place: str, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.place, self.problem, self.fix = place, problem, fix


def _check_bounds(text: bytes, source: str) -> None:
    """Walk the parser's events before anything is built.

    The size of each anchored value is remembered with its aliases expanded, so the count is
    what a consumer of the document would have to walk.
    """
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []  # anchor, values counted when it opened
    total = 0
    for event in yaml.parse(text, Loader=_Base):
        if isinstance(event, yaml.ScalarEvent):
            total += 1
            if len(event.value) > MAX_TEXT:
                raise DocumentError(
                    source,
                    _place_of(event.start_mark),
                    f"the value has {len(event.value)} characters, the limit is {MAX_TEXT}",
                    "Name a file instead of holding it",
                )
            if event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, total))
            total += 1
            if len(open_nodes) > MAX_DEPTH:
                raise DocumentError(
                    source,
                    _place_of(event.start_mark),
                    f"values are nested more than {MAX_DEPTH} deep",
                    "Flatten the document",
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor:
                sizes[anchor] = total - before
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in open_nodes):
                raise DocumentError(
                    source,
                    _place_of(event.start_mark),
                    f"the alias *{event.anchor} stands inside the value it names",
                    "Write the value out",
                )
            total += sizes.get(str(event.anchor), 1)
        if total > MAX_NODES:
            raise DocumentError(
                source,
                _place_of(event.start_mark),
                f"more than {MAX_NODES} values, aliases expanded",
                "Remove the aliases that repeat each other",
            )


def _construct_mapping(loader: Any, node: yaml.Node, deep: bool = False) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    if not isinstance(node, yaml.MappingNode):
        raise _ValueProblem(
            _place_of(node.start_mark), "this is tagged as a mapping and is none", "Remove the tag"
        )
    for key_node, value_node in node.value:
        if key_node.tag == _TAG + "merge":
            for part in _merge_parts(value_node):
                merged.update(loader.construct_object(part, deep=True))
            continue
        key = loader.construct_object(key_node, deep=True)
        if type(key) is not str:
            key = _key_text(key, key_node)
        if key in mapping:
            raise _ValueProblem(
                _place_of(key_node.start_mark),
                f"the key '{_cut(key)}' appears twice in one mapping",
                "Keep one of them",
            )
        mapping[key] = loader.construct_object(value_node, deep=deep)
    return merged | mapping if merged else mapping


def _key_text(key: Any, node: yaml.Node) -> UnquotedKey:
    if isinstance(key, bool):
        return UnquotedKey("true" if key else "false")
    if isinstance(key, int | float):
        return UnquotedKey(key)
    raise _ValueProblem(_place_of(node.start_mark), _cut(f"the key {key!r} is not text"), "Quote the key")


def _merge_parts(node: yaml.Node) -> list[yaml.Node]:
    """Return the mappings that `<<` brings in, the one that wins last (YAML's type library: merge)."""
    parts = node.value[::-1] if isinstance(node, yaml.SequenceNode) else [node]
    for part in parts:
        if part.tag != _TAG + "map":
            raise _ValueProblem(
                _place_of(part.start_mark),
                "the merge key `<<` takes a mapping or a list of mappings",
                "Name a mapping, as in `<<: *defaults`",
            )
    return parts


def _construct_yaml_map(loader: Any, node: yaml.MappingNode) -> Any:
    # PyYAML's two-step form, so that an anchored mapping is one object for all its aliases.
    data: dict[str, Any] = {}
    yield data
    data.update(_construct_mapping(loader, node, deep=True))


def _plain(construct: Any) -> Any:
    """Wrap the constructor of a scalar: bounded, and without surprises for what a tag claims, as `!!bool x`."""

    def construct_scalar(loader: Any, node: yaml.Node) -> Any:
        place = _place_of(node.start_mark)
        if isinstance(node, yaml.ScalarNode) and len(node.value) > MAX_NUMBER:
            raise _ValueProblem(
                place,
                f"a number of {len(node.value)} characters, the limit is {MAX_NUMBER}",
                "Write a smaller number, or quote the text",
            )
        try:
            return construct(loader, node)
        except (ValueError, KeyError, IndexError):
            kind = str(node.tag).rpartition(":")[2]
            raise _ValueProblem(
                place, f"{_cut(repr(node.value))} is no {kind}", "Write a plain value"
            ) from None

    return construct_scalar


# What JSON has, and no more: a set, bytes or a date is no value of a document.
_StrictLoader.yaml_constructors = {
    tag: _StrictLoader.yaml_constructors[tag]
    for tag in (
        None,
        *(_TAG + kind for kind in ("null", "bool", "int", "float", "str", "seq")),
    )
}
_StrictLoader.add_constructor(_TAG + "map", _construct_yaml_map)
for _kind in ("bool", "int", "float"):
    _StrictLoader.add_constructor(_TAG + _kind, _plain(_StrictLoader.yaml_constructors[_TAG + _kind]))
# Dates stay text: the launcher's schema has no date, and a version such as 2026-01-15 must be
# reported as text with the wrong shape, not as an object.
_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TAG + "timestamp"]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}
_StrictLoader.add_implicit_resolver(_TAG + "float", EXPONENT_WITHOUT_DOT, list("-+0123456789"))
