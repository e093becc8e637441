"""Reading YAML from people: safe types only, no repeated keys, bounded in every direction.

Numbers follow what the MarinSkyRL launcher reads (OmegaConf's resolver): `1e-6` is a float
although YAML 1.1 asks for a dot (contract, case n206). The C parser of PyYAML is used when
it is there; both parsers build the same values because what builds them is the same, and because the few
characters that they read differently are left to the pure one.
"""

import re
from typing import Any

import yaml

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

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
MAX_SLOW_BYTES = 256 << 10  # What the pure parser reads in a second and a half at worst.
_FEW_BYTES = MAX_NODES // 4  # Not enough for MAX_NODES values, however they are written.

# The numbers of YAML 1.1 without backtracking: the resolver's own patterns take 60 bytes for each character
# of `1:1:1…`.
_LONG_NUMBER = re.compile(
    r"[-+]?+(?:0b[01_]++|0x[0-9a-fA-F_]++|\.[0-9][0-9_]*+(?:[eE][-+]?[0-9]++)?+"
    r"|[0-9][0-9_]*+(?::[0-5]?[0-9])*+(?:\.[0-9_]*+)?+(?:[eE][-+]?[0-9]++)?+)"
)

_TAG = "tag:yaml.org,2002:"
_TEXT, _LIST, _MAPPING, _MERGE = _TAG + "str", _TAG + "seq", _TAG + "map", _TAG + "merge"
_END: Any = object()
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# The launcher reads with the pure parser, and of these the C parser makes something else: a tab or an inner byte
# order mark in plain text, a directive, a tag without a name, a comment that touches `|` or `>`, and in `[a?]` or
# `{a:}` the question mark and the colon. Each alternative begins with the one character that it needs, and looks
# behind from there: so the search goes from one such character to the next, in an eighth of the time.
_READ_DIFFERENTLY = re.compile(
    rb"\t|\xef\xbb\xbf|%(?<![^\n]%)|!(?<![^\s,\[{:?\x85-]!)(?![^\s,\]}\xc2])"
    rb"|\|[-+0-9]{0,2}#|>[-+0-9]{0,2}#|\?|:[,\[\]{}]"
)

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


def strict_loader(parser: Any) -> Any:
    """Return a PyYAML loader class that composes as `parser` (SafeLoader or CSafeLoader) does, with our tags."""

    class StrictLoader(parser):  # type: ignore[misc]  # which base depends on the machine
        def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
            """Find the tag of a node without one: PyYAML's rule for values, in bounded memory."""
            if kind is not yaml.ScalarNode:
                return _LIST if kind is yaml.SequenceNode else _MAPPING
            if implicit[0]:
                if len(value) > MAX_NUMBER:
                    return _TAG + ("float" if _LONG_NUMBER.fullmatch(value) else "str")
                for tag, pattern in _RESOLVERS.get(value[:1], ()):
                    if pattern.match(value):
                        return tag
            return _TEXT

    return StrictLoader


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
            unknown tags, several documents, more than MAX_SLOW_BYTES with what programs read differently, or
            bad syntax.
    """
    return load_with(_Loader, data, source=source)


def load_with(loader_class: Any, data: bytes, *, source: str) -> Any:
    """Like `load_yaml`, with the loader that `strict_loader` made of one of PyYAML's parsers.

    Of bad syntax each parser has its own description.
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
    if differently := _READ_DIFFERENTLY.search(text):
        if len(text) > MAX_SLOW_BYTES:
            seen = differently[0].decode("utf-8", "replace")
            raise DocumentError(
                source,
                f"{text.count(b'\n', 0, differently.start()) + 1}:1",
                f"{seen!r} in this line is read differently by different programs, and slowly in a file of more "
                f"than {MAX_SLOW_BYTES} bytes",
                "Write it otherwise",
            )
        loader_class = _PureLoader
    if len(text) <= _FEW_BYTES:
        try:
            return _read_simple(loader_class, text)
        except (_NotSimple, _ValueProblem, yaml.YAMLError):
            pass  # Read with care, to accept it or to say what is wrong.
    try:
        _check_bounds(loader_class, text, source)
        loader = loader_class(text)
        try:
            node = loader.get_single_node()
            return None if node is None else _built(loader, node, {})
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


def compose_yaml(data: bytes) -> yaml.Node | None:
    """Return the nodes, with their places, of a document that `load_yaml` accepted; None of an empty one."""
    text = data.removeprefix(_BYTE_ORDER_MARK)
    parser = yaml.SafeLoader if _READ_DIFFERENTLY.search(text) else _Parser
    node: yaml.Node | None = yaml.compose(text, parser)
    return node


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


class _NotSimple(Exception):
    """A document that `_read_simple` leaves to the ordinary way."""


def _read_simple(loader_class: Any, text: bytes) -> Any:
    """Read a small document in one walk of the parser's events, which takes less than half the time.

    Returns:
        The value, if there is nothing in the document but texts, numbers, lists and mappings.

    Raises:
        _NotSimple, _ValueProblem, yaml.YAMLError: there is more in it, such as an alias, a tag or a mistake.
    """
    loader = loader_class(text)
    try:
        loader.get_event()  # The start of the stream.
        if type(loader.get_event()) is not yaml.DocumentStartEvent:
            raise _NotSimple
        value = _simple_value(loader, 0)
        loader.get_event()  # The end of the document.
        if type(loader.get_event()) is not yaml.StreamEndEvent:
            raise _NotSimple
        return value
    finally:
        loader.dispose()


def _simple_value(loader: Any, depth: int) -> Any:
    """Build the value that begins with the next event; `_END` if that ends the collection around it."""
    event = loader.get_event()
    kind = type(event)
    if kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
        return _END
    if kind is yaml.AliasEvent or event.anchor or event.tag:
        raise _NotSimple
    if kind is yaml.ScalarEvent:
        tag = loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        if tag == _TEXT:
            return event.value
        if tag not in _SCALARS:  # A merge key.
            raise _NotSimple
        return _SCALARS[tag](loader, yaml.ScalarNode(tag, event.value, event.start_mark))
    if depth == MAX_DEPTH:
        raise _NotSimple
    if kind is yaml.SequenceStartEvent:
        items = []
        while (item := _simple_value(loader, depth + 1)) is not _END:
            items.append(item)
        return items
    mapping: dict[str, Any] = {}
    while (key := _simple_value(loader, depth + 1)) is not _END:
        if type(key) is not str or key in mapping:
            raise _NotSimple
        mapping[key] = _simple_value(loader, depth + 1)
    return mapping


def _check_bounds(loader_class: Any, text: bytes, source: str) -> None:
    """Walk the parser's events before anything is built.

    The size of each anchored value is remembered with its aliases expanded, so the count is
    what a consumer of the document would have to walk.
    """
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []  # anchor, values counted when it opened
    total = 0
    parser = loader_class(text)
    try:
        while True:
            event = parser.get_event()
            kind = type(event)
            if kind is yaml.ScalarEvent:
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
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                open_nodes.append((event.anchor, total))
                total += 1
                if len(open_nodes) > MAX_DEPTH:
                    raise DocumentError(
                        source,
                        _place_of(event.start_mark),
                        f"values are nested more than {MAX_DEPTH} deep",
                        "Flatten the document",
                    )
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                anchor, before = open_nodes.pop()
                if anchor:
                    sizes[anchor] = total - before
            elif kind is yaml.AliasEvent:
                if any(anchor == event.anchor for anchor, _ in open_nodes):
                    raise DocumentError(
                        source,
                        _place_of(event.start_mark),
                        f"the alias *{event.anchor} stands inside the value it names",
                        "Write the value out",
                    )
                total += sizes.get(str(event.anchor), 1)
            elif kind is yaml.StreamEndEvent:
                return
            if total > MAX_NODES:
                raise DocumentError(
                    source,
                    _place_of(event.start_mark),
                    f"more than {MAX_NODES} values, aliases expanded",
                    "Remove the aliases that repeat each other",
                )
    finally:
        parser.dispose()


def _built(loader: Any, node: Any, shared: dict[int, Any]) -> Any:
    """Build the value of a node.

    PyYAML's own way to do it takes twice the time: it also serves values that hold themselves, which
    `_check_bounds` refuses.

    Args:
        loader: knows how to read a scalar.
        node: of a document within bounds.
        shared: id of a node -> its value, so that an anchored value is one object for all its aliases.
    """
    tag = node.tag
    if tag == _TEXT and type(node) is yaml.ScalarNode:
        return node.value
    if tag == _MAPPING:
        if id(node) not in shared:
            shared[id(node)] = _built_mapping(loader, node, shared)
        return shared[id(node)]
    if tag == _LIST:
        if not isinstance(node, yaml.SequenceNode):
            loader.construct_sequence(node)  # Raises: a tag that claims what the value is not.
        if id(node) not in shared:
            shared[id(node)] = [_built(loader, item, shared) for item in node.value]
        return shared[id(node)]
    return _SCALARS.get(tag, yaml.SafeLoader.construct_undefined)(loader, node)


def _built_mapping(loader: Any, node: yaml.Node, shared: dict[int, Any]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    if not isinstance(node, yaml.MappingNode):
        raise _ValueProblem(
            _place_of(node.start_mark), "this is tagged as a mapping and is none", "Remove the tag"
        )
    for key_node, value_node in node.value:
        if key_node.tag == _MERGE:
            for part in _merge_parts(value_node):
                merged.update(_built(loader, part, shared))
            continue
        key = _built(loader, key_node, shared)
        if type(key) is not str:
            key = _key_text(key, key_node)
        if key in mapping:
            raise _ValueProblem(
                _place_of(key_node.start_mark),
                f"the key '{_cut(key)}' appears twice in one mapping",
                "Keep one of them",
            )
        mapping[key] = _built(loader, value_node, shared)
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
        if part.tag != _MAPPING:
            raise _ValueProblem(
                _place_of(part.start_mark),
                "the merge key `<<` takes a mapping or a list of mappings",
                "Name a mapping, as in `<<: *defaults`",
            )
    return parts


def _plain(construct: Any) -> Any:
    """Wrap the constructor of a scalar: bounded, and without surprises for what a tag claims, as `!!bool x`."""

    def construct_scalar(loader: Any, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode) and len(node.value) > MAX_NUMBER:
            raise _ValueProblem(
                _place_of(node.start_mark),
                f"a number of {len(node.value)} characters, the limit is {MAX_NUMBER}",
                "Write a smaller number, or quote the text",
            )
        try:
            return construct(loader, node)
        except (ValueError, KeyError, IndexError):
            kind = str(node.tag).rpartition(":")[2]
            raise _ValueProblem(
                _place_of(node.start_mark), f"{_cut(repr(node.value))} is no {kind}", "Write a plain value"
            ) from None

    return construct_scalar


# What JSON has, and no more: a set, bytes or a date is no value of a document.
_SCALARS: dict[str, Any] = {
    _TEXT: yaml.SafeLoader.construct_yaml_str,
    _TAG + "null": yaml.SafeLoader.construct_yaml_null,
    _TAG + "bool": _plain(yaml.SafeLoader.construct_yaml_bool),
    _TAG + "int": _plain(yaml.SafeLoader.construct_yaml_int),
    _TAG + "float": _plain(yaml.SafeLoader.construct_yaml_float),
}


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """First character of a value -> the tags it may have.

    Dates stay text: the launcher's schema has no date, and a version such as 2026-01-15 must be reported as text
    with the wrong shape, not as an object.
    """
    resolvers = {
        first: [(tag, pattern) for tag, pattern in rules if tag != _TAG + "timestamp"]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    for first in "-+0123456789":
        resolvers.setdefault(first, []).append((_TAG + "float", EXPONENT_WITHOUT_DOT))
    return resolvers


_RESOLVERS = _resolvers()
_PureLoader = strict_loader(yaml.SafeLoader)
_Loader = strict_loader(_Parser)
