"""Cards: dated facts about models, datasets and clusters.

A card holds what is known. What is not known is left out, and a check that would need it
reports "not checked: needs …" instead of guessing. The first block of every model is the core
of the schema; the rest are facts that single checks use.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_CARD = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False, defer_build=True)
"""Deferred: what reads no card, such as `lint` of a bare document, builds no schema of one."""

_ADDRESS = r"^[a-z][a-z0-9]*://[^\s/]\S*$"
"""An absolute address such as `s3://bucket/marin`."""

_STORE = r"^(gs://[^\s/]\S*|file:///\S+)$"
"""An address that `store.open_store` may know; it says what is wrong with one that it does not."""

PositiveInt = Field(default=None, gt=0)


class MissingFact(LookupError):
    """A card does not hold a fact. `str()` is the rest of "not checked: needs …"."""


class HfExport(BaseModel):
    """Where an artifact that exists already keeps a Hugging Face style model directory."""

    model_config = _CARD

    name: str
    """Artifact name."""
    version: str
    """Artifact version."""
    fingerprint: str = Field(pattern=r"^[0-9a-f]{8,64}$")
    """Fingerprint in the artifact's record."""
    uri: str | None = None
    """Existing output path; left out when it is `{prefix}/{name}/{version}`."""
    relative_path: str | None = None
    """Path of the export below the artifact; left out when it was not looked up."""


class ModelCard(BaseModel):
    """Geometry and pinned revision of one model. Sources belong into `sources`."""

    model_config = _CARD

    kind: Literal["model"]
    name: str
    num_attention_heads: int | None = PositiveInt
    num_key_value_heads: int | None = PositiveInt
    num_hidden_layers: int | None = PositiveInt
    num_experts: int | None = PositiveInt
    """null in the file means a dense model; left out means unknown."""
    vocab_size: int | None = PositiveInt
    max_position_embeddings: int | None = PositiveInt
    hidden_size: int | None = PositiveInt
    dtype: str | None = None
    parameters: int | None = PositiveInt

    architecture: str | None = None
    """Class name in the model's config.json."""
    num_experts_per_token: int | None = PositiveInt
    num_shared_experts: int | None = PositiveInt
    moe_intermediate_size: int | None = PositiveInt
    head_dim: int | None = PositiveInt
    sliding_window: int | None = PositiveInt
    linear_key_heads: int | None = PositiveInt
    linear_value_heads: int | None = PositiveInt
    tokenizer_size: int | None = PositiveInt
    """Entries of the tokenizer, `len(tokenizer)`."""
    repository: str | None = None
    """Hugging Face repository id."""
    revision: str | None = Field(default=None, pattern=r"^[0-9a-f]{40}$")
    export: HfExport | None = None
    sources: tuple[str, ...] = ()


class DatasetCard(BaseModel):
    """Size of one dataset and where it lives."""

    model_config = _CARD

    kind: Literal["dataset"]
    name: str
    rows: int | None = Field(default=None, ge=0)
    """Training rows."""
    max_prompt_tokens: int | None = PositiveInt
    """Longest prompt with its chat template, in tokens."""

    validation_rows: int | None = Field(default=None, ge=0)
    prompt_token_counts: dict[Annotated[str, Field(pattern=r"^[0-9]{1,9}$")], int] | None = None
    """Limit in tokens (as text) -> rows with prompts of at most that length."""
    env_class: str | None = None
    tasktrove_verify_tool_ref: str | None = None
    """`verify_tool_ref` of the TaskTrove manifest; "" if the manifest has none."""
    export: HfExport | None = None
    train_path: str | None = None
    validation_path: str | None = None
    sources: tuple[str, ...] = ()


class ClusterCard(BaseModel):
    """Node shape, routing and storage of one Iris cluster, as of a date."""

    model_config = _CARD

    kind: Literal["cluster"]
    name: str
    gpu_variant: str | None = None
    gpus_per_node: int | None = PositiveInt
    cpu_per_node: float | None = Field(default=None, gt=0)
    memory_per_node_gb: float | None = Field(default=None, gt=0)
    """Allocatable memory of one node in GiB, Iris's reading of `GB`."""
    disk_per_node_gb: float | None = Field(default=None, gt=0)
    """Allocatable disk of one node in GiB."""
    max_nodes: int | None = PositiveInt
    hub: str | None = None
    """Configuration path of the hub that passes jobs on to this cluster."""

    config: str | None = None
    """Path of the cluster's own Iris configuration."""
    scheduler: Literal["iris", "embedded"] | None = None
    """`embedded`: the local Iris that the launcher starts itself."""
    arch: str | None = None
    sm: str | None = None
    """CUDA compute capability, quoted: "9.0"."""
    hbm_gb: float | None = Field(default=None, gt=0)
    rack_nodes: int | None = PositiveInt
    schedulable_rack_nodes: int | None = PositiveInt
    parents: tuple[str, ...] = ()
    """Configuration paths of every hub that has this cluster as a peer (EXE-20)."""
    public_host: str | None = None
    """Host of the public parent: `ingress.host` in controller mode (EXE-10)."""
    region: str | None = None
    """Storage region of the nodes; a bucket of that region is called `marin-<region>` (EXE-17)."""
    marin_prefix: str | None = Field(default=None, pattern=_ADDRESS)
    """`MARIN_PREFIX` on that cluster: root of durable artifacts."""
    temp_bucket: str | None = Field(default=None, pattern=_ADDRESS)
    """Root of temporary data, without `tmp/`."""
    store: str | None = Field(default=None, pattern=_STORE)
    """Where launches to this cluster keep bundles, records and claims: `gs://bucket/prefix` or
    `file:///absolute/folder`; see docs/stores.md."""
    default_highest_band: Literal["system", "production", "interactive", "batch"] | None = None
    """Highest priority band of a user who is no administrator (EXE-03)."""
    default_user_budget: int | None = PositiveInt
    node_cost: int | None = PositiveInt
    """Share of the budget that one GPU node takes (EXE-21)."""
    nccl_socket_ifname: str | None = None
    smoke_threshold_nodes: int | None = PositiveInt
    """Plans with more nodes write everything out (EXE-27); null in the file means that none does."""
    env_classes: tuple[str, ...] = ()
    """Environments that only this cluster has: those of the rehearsal on an embedded one (OBJ-03)."""
    as_of: str | None = None
    """ISO date on which the facts were read."""
    sources: tuple[str, ...] = ()


Card = ModelCard | DatasetCard | ClusterCard


def fact(card: Card | None, name: str, kind: str) -> Any:
    """Return the fact `name` of `card`.

    A field that the card's file sets to null is known to be nothing and gives None.

    Args:
        card: the card, or None where none was given.
        name: field name.
        kind: `model`, `dataset` or `cluster`, for the message.

    Raises:
        MissingFact: if there is no card, or the card leaves the field out.
    """
    if card is None:
        raise MissingFact(f"a {kind} card with {name}")
    if name not in card.model_fields_set:
        raise MissingFact(f"{name} in the {kind} card '{card.name}'")
    return getattr(card, name)
