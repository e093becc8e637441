"""The picture of the nodes: every GPU with its ranks, and which of them form groups."""

from collections.abc import Iterator
from itertools import groupby

from tools.launcher.render.layout import (
    ORDERS,
    ClusterLayout,
    Gpu,
    OtherNodes,
    Rank,
    dimensions_of,
    gpus_of,
    groups_of,
)
from tools.launcher.render.report_markup import Markup, element, empty, joined, plural, shortened, table

COLOURS = 8
"""Colours of groups; more groups than that repeat them, and their labels tell them apart."""

_WIDTH = 340  # a phone of 375 px shows one node at its full size
_GAP = 4
_HEAD = 20
_LINE = 13
_MOST_COLUMNS = 4
_MOST_LETTERS = 46  # of a node's title, beside "node 127"

_ROLES = {"policy": "policy", "reference": "ref", "engine": "engine"}
"""Role -> word in a cell, which has room for ten letters."""

_COPY = "copy"
_COLOUR_KEYS = {_COPY: "g", "TP": "t", "PP": "p", "CP": "c", "SP": "s", "EP": "e", "DP": "d"}
"""What colours may tell -> first letter of the class."""

_COPY_LABEL = "copy of the model (a policy's DP rank, an engine's number)"
_NAMES = {
    "TP": "tensor parallel",
    "PP": "pipeline stage",
    "CP": "context parallel",
    "SP": "sequence parallel",
    "EP": "expert parallel",
    "DP": "data parallel",
}


def cluster_picture(layout: ClusterLayout) -> Markup:
    """Return the nodes with their GPUs, a choice of what colours tell, a table of groups and the sources."""
    choices = _choices(layout)
    nodes = [
        element("li", _node(node, list(gpus), layout, choices))
        for node, gpus in groupby(gpus_of(layout), key=lambda gpu: gpu.node)
    ]
    return joined(
        _chooser(choices),
        element("ol", *nodes, class_="nodes"),
        _groups(layout),
        _sources(layout),
    )


def colour_rules() -> str:
    """Return the rules for colours by the chosen dimension. The first choice needs no :has()."""
    rules = []
    for choice, letter in _COLOUR_KEYS.items():
        chosen = "" if choice == _COPY else f":root:has(#by-{letter}:checked) "
        if chosen:
            rules.append(f"{chosen}.r{{--f:var(--plain);--s:var(--edge)}}")
        rules += [
            f"{chosen}.{letter}{index}{{--f:var(--f{index});--s:var(--s{index})}}" for index in range(COLOURS)
        ]
    return "\n".join(rules)


def _choices(layout: ClusterLayout) -> tuple[str, ...]:
    """What colours can tell apart in this plan."""
    sizes = dimensions_of(layout)
    used = {name for role in sizes.values() for name in role}
    if "DP" not in sizes["engine"]:
        used.discard("DP")  # a policy's are its copies
    return (_COPY, *(name for name in _COLOUR_KEYS if name in used))


def _chooser(choices: tuple[str, ...]) -> Markup | None:
    if len(choices) == 1:
        return None
    options = [
        element(
            "label",
            empty(
                "input",
                type="radio",
                name="colour",
                id=f"by-{_COLOUR_KEYS[choice]}",
                checked="" if choice == _COPY else None,
            ),
            " ",
            _COPY_LABEL if choice == _COPY else f"{choice}, {_NAMES[choice]}",
        )
        for choice in choices
    ]
    return element("fieldset", element("legend", "Colour tells"), *options, class_="chooser")


def _node(node: int, gpus: list[Gpu], layout: ClusterLayout, choices: tuple[str, ...]) -> Markup:
    columns = min(len(gpus), _MOST_COLUMNS)
    width = (_WIDTH - _GAP * (columns - 1)) // columns
    other = next((item for item in layout.others if 0 <= node - item.first_node < item.nodes), None)
    lines = {
        role: 1 + max((len(_lines(role, rank)) for gpu in gpus if (rank := getattr(gpu, role))), default=-1)
        for role in _ROLES
    }
    strips = {role: count * _LINE + 6 for role, count in lines.items() if count}
    height = sum(strips.values()) or _LINE + 6
    cells = []
    for gpu in gpus:
        row, column = divmod(gpu.slot, columns)
        x, top = column * (width + _GAP), _HEAD + row * (height + _GAP + 2)
        cells += list(_cell(gpu, x, top, width, strips, choices)) or [_idle(other, x, top, width, height)]
    rows = -(-len(gpus) // columns)
    label = f"node {node}: {_said(gpus, other)}"
    return element(
        "svg",
        element("title", label, id=f"node-{node}"),
        element(
            "text", element("tspan", f"node {node}", class_="b"), f" {_short(gpus, other)}", x=0, y=_LINE
        ),
        *cells,
        viewBox=f"0 0 {_WIDTH} {_HEAD + rows * (height + _GAP + 2)}",
        role="img",
        aria_labelledby=f"node-{node}",
    )


def _cell(
    gpu: Gpu, x: int, top: int, width: int, strips: dict[str, int], choices: tuple[str, ...]
) -> Iterator[Markup]:
    for role, height in strips.items():
        rank: Rank | None = getattr(gpu, role)
        if rank is not None:
            yield element(
                "g",
                empty("rect", x=x + 1, y=top + 1, width=width - 2, height=height - 2, rx=2),
                _words(role, rank, x + 6, top + _LINE),
                class_=" ".join(("r", role, *_classes(rank, choices))),
            )
        top += height


def _words(role: str, rank: Rank, x: int, y: int) -> Markup:
    number = rank.group if role == "engine" else rank.number
    return element(
        "text",
        element("tspan", f"{_ROLES[role]} {number}", class_="b"),
        *(element("tspan", line, x=x, dy=_LINE) for line in _lines(role, rank)),
        x=x,
        y=y,
    )


def _lines(role: str, rank: Rank) -> list[str]:
    """Coordinates, two on a line: a cell is 82 wide."""
    words = [f"{name}{index}" for name, index in rank.coordinates]
    return [" ".join(words[start : start + 2]) for start in range(0, len(words), 2)]


def _classes(rank: Rank, choices: tuple[str, ...]) -> list[str]:
    known = {_COPY: rank.group, **dict(rank.coordinates)}
    return [f"{_COLOUR_KEYS[name]}{known[name] % COLOURS}" for name in choices if name in known]


def _idle(other: OtherNodes | None, x: int, top: int, width: int, height: int) -> Markup:
    return element(
        "g",
        empty("rect", x=x + 1, y=top + 1, width=width - 2, height=height - 2, rx=2),
        element("text", other.role if other else "idle", x=x + 6, y=top + _LINE),
        class_="i",
    )


def _said(gpus: list[Gpu], other: OtherNodes | None) -> str:
    """What stands on a node, in words for who does not see the picture."""
    said = [f"{role} ranks {_span([rank.number for rank in ranks])}" for role, ranks in _trained(gpus)]
    engines = _engines(gpus)
    if engines:
        said.append(engines)
    if other:
        said.append(other.role)
    return ", ".join(said) or "idle"


def _short(gpus: list[Gpu], other: OtherNodes | None) -> str:
    """The same for the picture, with the coordinates that a whole node shares."""
    roles: dict[str, list[str]] = {}
    for role, ranks in _trained(gpus):
        shared = [
            f"{name}{index}"
            for name, index in ranks[0].coordinates
            if all((name, index) in rank.coordinates for rank in ranks) and len(ranks) > 1
        ]
        roles.setdefault(" ".join(shared), []).append(role)
    said = [" ".join((" + ".join(names), shared)).strip() for shared, names in roles.items()]
    said += [text for text in (_engines(gpus), other.role if other else "") if text]
    return shortened(", ".join(said) or "idle", _MOST_LETTERS)


def _trained(gpus: list[Gpu]) -> Iterator[tuple[str, list[Rank]]]:
    for role in ("policy", "reference"):
        ranks = [rank for gpu in gpus if (rank := getattr(gpu, role))]
        if ranks:
            yield role, ranks


def _engines(gpus: list[Gpu]) -> str:
    numbers = sorted({gpu.engine.group for gpu in gpus if gpu.engine})
    if not numbers:
        return ""
    return f"{'engine' if len(numbers) == 1 else 'engines'} {_span(numbers)}"


def _span(numbers: list[int]) -> str:
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}"


def _groups(layout: ClusterLayout) -> Markup | None:
    """Groups by role and dimension: how many, how large, and whether they stay on a node."""
    rows = []
    for (role, dimension), found in groupby(
        groups_of(layout), key=lambda group: (group.role, group.dimension)
    ):
        groups = list(found)
        nodes = max(len({node for node, _ in group.members}) for group in groups)
        rows.append(
            (
                f"{role} {dimension}",
                _NAMES[dimension],
                f"{plural(len(groups), 'group')} of {len(groups[0].members)}",
                "within a node" if nodes == 1 else f"across {nodes} nodes",
            )
        )
    if not rows:
        return None
    columns = ("group", "what it shares", "how many", "reach")
    return table("Groups that communicate", columns, [tuple(row) for row in rows])


def _sources(layout: ClusterLayout) -> Markup:
    trainer = "megatron" if layout.policy.strategy == "megatron" else "fsdp"
    lines = [
        element("li", f"{what}: {ORDERS[key]}")
        for what, key in (("Roles", "roles"), ("Trained ranks", trainer), ("Engines", "engines"))
        if key != "engines" or layout.engines
    ]
    return element(
        "details",
        element("summary", "How ranks are put on GPUs here, and what is not pinned"),
        element(
            "p",
            "The launch document pins sizes. It pins neither an order of ranks nor machines: node 0 is a "
            "position, and Iris and Ray decide at the start which machine takes it. Ranks are drawn in the "
            "default order of the libraries that number them:",
        ),
        element("ul", *lines),
        class_="note",
    )
