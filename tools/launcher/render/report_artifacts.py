"""The artifact graph: a picture of what is made from what, and where it stays for how long."""

from tools.launcher.render.detail import PlannedRetention
from tools.launcher.render.plan import LaunchPlan, PlannedArtifact
from tools.launcher.render.report_markup import Markup, element, empty, joined, plural, shortened, table

_WIDTH = 340
_BOX = 74
_STEP = 88
_LANE = 12
_LANES_WIDTH = 120
_MOST_LETTERS = 44  # of a line at 12 px beside two lanes

_KINDS = {"hf_model": "model", "dataset": "dataset", "skyrl": "RL run", "evaluate": "evaluation"}


def artifact_graph(plan: LaunchPlan, retention: PlannedRetention) -> Markup:
    """Return the picture of the graph, and two tables: artifacts, and what the run writes."""
    artifacts = plan.artifacts
    return joined(
        element("figure", _picture(artifacts, retention)),
        *(_described(item) for item in artifacts),
        table(
            "What the run writes",
            ("output", "address, and how long it stays"),
            [
                (
                    name.replace("_", " "),
                    joined(element("code", uri), element("span", _kept(name, retention), class_="note")),
                )
                for name, uri in plan.outputs.items()
            ],
        ),
    )


def _picture(artifacts: tuple[PlannedArtifact, ...], retention: PlannedRetention) -> Markup:
    """Boxes from top to bottom, dependencies first; each source has a lane of its own at the left."""
    rows = {item.identity: index for index, item in enumerate(artifacts)}
    sources = sorted({rows[dep] for item in artifacts for dep in item.deps if dep in rows})
    # Many sources stand closer, and then share lanes: the boxes need their width.
    lane = max(1, min(_LANE, _LANES_WIDTH // max(1, len(sources))))
    lanes = {source: 6 + lane * index % _LANES_WIDTH for index, source in enumerate(sources)}
    left = 14 + min(lane * len(lanes), _LANES_WIDTH)
    said = "; ".join(
        f"{_kind(item)} {item.identity}" + (f" is made from {' and '.join(item.deps)}" if item.deps else "")
        for item in artifacts
    )
    return element(
        "svg",
        element("title", f"Artifacts: {said}", id="artifacts-title"),
        *(_edges(item, rows, lanes, left) for item in artifacts),
        *(_box(item, rows[item.identity] * _STEP, left, retention) for item in artifacts),
        viewBox=f"0 0 {_WIDTH} {len(artifacts) * _STEP - (_STEP - _BOX) + 2}",
        role="img",
        aria_labelledby="artifacts-title",
        class_="graph",
    )


def _edges(item: PlannedArtifact, rows: dict[str, int], lanes: dict[int, int], left: int) -> Markup:
    row = rows[item.identity]
    known = [rows[dep] for dep in item.deps if dep in rows]
    apart = min(14, (_BOX - 32) // max(1, len(known) - 1))
    lines = []
    for arrival, source in enumerate(sorted(known)):
        x = lanes[source]
        leave, arrive = source * _STEP + _BOX - 14, row * _STEP + 16 + apart * arrival
        lines.append(empty("path", d=f"M{left} {leave}H{x}V{arrive}H{left - 2}", class_="edge"))
        lines.append(
            empty(
                "path",
                d=f"M{left - 7} {arrive - 4}L{left - 1} {arrive}L{left - 7} {arrive + 4}z",
                class_="head",
            )
        )
    return element("g", *lines)


def _box(item: PlannedArtifact, top: int, left: int, retention: PlannedRetention) -> Markup:
    address, _, fingerprint = item.identity.rpartition(":")
    name, _, version = address.rpartition("@")
    letters = _MOST_LETTERS - left // 8
    lines = [shortened(name, letters), shortened(f"@{version}:{fingerprint}", letters)]
    if item.kind == "skyrl":
        kept = plural(retention.resume_checkpoint_count, "checkpoint")
        lines.append(f"{kept}, {plural(retention.temporary_days, 'day')}")
    else:
        lines.append("exists already" if item.adopted else "is kept")
    x = left + 10
    return element(
        "g",
        empty("rect", x=left, y=top + 1, width=_WIDTH - left - 1, height=_BOX - 2, rx=3),
        element(
            "text",
            element("tspan", _kind(item), class_="b"),
            f" stage {shortened(item.stage, letters - len(_kind(item)) - 7)}",
            *(element("tspan", line, x=x, dy=16) for line in lines),
            x=x,
            y=top + 18,
        ),
        class_="there" if item.adopted else "made",
    )


def _kind(item: PlannedArtifact) -> str:
    return _KINDS.get(item.kind, item.kind)


def _described(item: PlannedArtifact) -> Markup:
    """Everything of an artifact in full, which the picture has no room for."""
    rows: list[tuple[Markup | str, ...]] = [
        ("identity", element("code", item.identity)),
        ("address", element("code", item.path)),
        ("made", "exists already; this launch only reads it" if item.adopted else "by this launch"),
    ]
    if item.deps:
        rows.append(("from", joined(*(element("code", dep) for dep in item.deps), between=", ")))
    return table(f"{_kind(item)} of stage {item.stage}", ("field", "value"), rows)


def _kept(name: str, retention: PlannedRetention) -> str:
    if name not in retention.temporary_outputs:
        return "until somebody deletes it"
    days = f"{plural(retention.temporary_days, 'day')}, then the bucket deletes it"
    if name == "checkpoint_root":
        return f"the newest {retention.resume_checkpoint_count} checkpoints, {days}"
    return days
