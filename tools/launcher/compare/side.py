"""One of two launches that are compared."""

from typing import Any

from pydantic import BaseModel, ConfigDict, InstanceOf

from tools.launcher.documents.canonical import CanonicalEncodingError, digest_of
from tools.launcher.graph.document_recipe import document_recipe
from tools.launcher.preflight.checks.artifacts.addresses import document_address
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.rl.pinning import FRESH

COMMIT = "runtime.launcher_commit"
PROFILE = "runtime.profile"
RESUME_MODE = "skyrl.trainer.resume_mode"

BESIDE_DOCUMENT_RECIPE = (COMMIT, PROFILE, RESUME_MODE)
"""What of an RL step's fingerprint `document_recipe` leaves out, so that a repin is known by the rest."""


class Side(BaseModel):
    """A launch document and what came with it.

    Attributes:
        name: as it was asked for.
        origin: where it was found, for people.
        subject: the document, with its runtime manifest where there is one.
        recipe: fingerprint of the RL step, None of a document that comes without its graph.
        compatible: fingerprints whose unfinished output the version ledger lets this launch go on from.
        gpu_hours: the most that a launch may take, None if it is not known.
        gpu_hours_needs: what it would take to know it, "" if it is known.
        beside: what its graph says of the launch that the document does not (`beside_document`), None of a
            document that comes without its graph.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    name: str
    origin: str
    subject: InstanceOf[PreflightSubject]
    recipe: str | None
    compatible: tuple[str, ...] = ()
    gpu_hours: float | None
    gpu_hours_needs: str
    beside: dict[str, Any] | None = None

    @property
    def document(self) -> dict[str, Any]:
        return self.subject.document

    @property
    def launch(self) -> str | None:
        """The launch digest, None for a document that no file can hold."""
        try:
            return digest_of(self.document)
        except CanonicalEncodingError:
            return None

    @property
    def address(self) -> tuple[str, str] | None:
        """Name and version of the run, None where the document does not say."""
        try:
            return document_address(self.subject)
        except UnreadableValue:
            return None

    @property
    def storage(self) -> str | None:
        """Prefix of the cluster's storage with a `/` at its end, None where the output path does not show it."""
        root = self.subject.get("artifacts.export_root")
        if self.address is None or not isinstance(root, str):
            return None
        end = f"/{self.address[0]}/{self.address[1]}/exports"
        return f"{root.removesuffix(end)}/" if root.endswith(end) else None

    @property
    def output(self) -> Any:
        """What tells the run's output path from others."""
        return self.subject.get("artifacts.terminal_manifest_uri")

    @property
    def checkpoint_root(self) -> Any:
        return self.subject.get("artifacts.checkpoint_root")

    @property
    def resume_mode(self) -> Any:
        """What the document says, else the runtime's default, None if neither is known."""
        written = self.subject.get(RESUME_MODE)
        return written if written is not None or self.subject.runtime is None else self._default_resume_mode()

    @property
    def starts_fresh(self) -> bool:
        return bool(self.resume_mode == FRESH)

    def _default_resume_mode(self) -> Any:
        try:
            return self.subject.text(RESUME_MODE)
        except UnreadableValue:
            return None


def identity_content(document: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a document alone says of the recipe's identity, comparable with another's.

    Raises:
        CanonicalEncodingError: for a value that no file can hold.
    """
    subject = PreflightSubject(document=document)
    return (document_recipe(document), *(subject.get(path) for path in BESIDE_DOCUMENT_RECIPE))
