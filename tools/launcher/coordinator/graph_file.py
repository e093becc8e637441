"""`graph.json` as the coordinator reads it: which steps there are, in which order, where they go."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.launcher.graph.stages import needed_by, other_stages, stage_ends

SUPPORTED_SCHEMA = 1


class GraphProblem(ValueError):
    """The graph of the bundle cannot be walked. The message says what is wrong with it."""


# Unknown fields are carried by the bundle for others (the plan, the record), so they are let pass.
class GraphStep(BaseModel):
    """One step of the graph.

    Attributes:
        address: `name@version`.
        kind: what makes it.
        fingerprint: 64 hex digits, or the 8 on record of an adopted artifact.
        identity: `name@version:<8 hex digits>`.
        output_path: URI of the artifact.
        deps: addresses of the steps it reads.
        config: what the maker of this kind needs.
        compatible: fingerprints whose unfinished output this step may go on from (graph/ledger.py).
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    address: str
    name: str
    version: str
    kind: Literal["hf_model", "dataset", "skyrl", "evaluate"]
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")]
    identity: str
    output_path: Annotated[str, Field(min_length=1)]
    deps: list[str]
    config: dict[str, Any]
    compatible: list[Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]] = []


class GraphFile(BaseModel):
    """The steps in an order in which each comes after what it reads.

    Attributes:
        stages: stage -> its last step. Which steps a stage has follows from their kinds.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    schema_number: Annotated[int, Field(alias="schema")]
    experiment_name: str
    stages: dict[str, str]
    steps: list[GraphStep]


def read_graph(data: bytes) -> GraphFile:
    """Read graph.json.

    Raises:
        GraphProblem: not of this schema, an address twice, or a step before what it reads.
    """
    try:
        graph = GraphFile.model_validate_json(data)
    except ValidationError as error:
        finding = error.errors()[0]
        place = ".".join(str(part) for part in finding["loc"]) or "the file"
        raise GraphProblem(f"graph.json: {place}: {finding['msg']}. Build the experiment again") from None
    if graph.schema_number != SUPPORTED_SCHEMA:
        raise GraphProblem(
            f"graph.json has schema {graph.schema_number}, this coordinator reads {SUPPORTED_SCHEMA}. "
            "Launch with the launcher that built it"
        )
    seen: set[str] = set()
    for step in graph.steps:
        if step.address in seen:
            raise GraphProblem(f"graph.json has {step.address} twice. Build the experiment again")
        missing = [dep for dep in step.deps if dep not in seen]
        if missing:
            raise GraphProblem(
                f"graph.json: {step.address} comes before {missing[0]}, which it reads. Build it again"
            )
        seen.add(step.address)
    for stage, address in graph.stages.items():
        if address not in seen:
            raise GraphProblem(
                f"graph.json: stage {stage!r} ends at {address}, which is no step. Build it again"
            )
    return graph


def steps_up_to(graph: GraphFile, stage: str) -> tuple[GraphStep, ...]:
    """Return the steps which the stage makes or uses, in the graph's order.

    Raises:
        GraphProblem: the graph has no such stage.
    """
    ends = stage_ends({step.address: step.kind for step in graph.steps})
    if stage not in ends:
        raise GraphProblem(f"the graph has no stage {stage!r}. {other_stages(stage, ends)}")
    needed = needed_by(ends[stage], {step.address: step.deps for step in graph.steps})
    return tuple(step for step in graph.steps if step.address in needed)
