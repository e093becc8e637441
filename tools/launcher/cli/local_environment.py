"""The store, object root and cluster of the local Iris, from the user's environment."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tools.launcher.iris.local.state import state_dir
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.locations import ObjectRoot


class LocalEnvironment(BaseModel):
    """Where the local Iris and everything it leaves live."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    state: Path
    """Slipway's state folder."""

    @property
    def store_url(self) -> str:
        """Address of the store of records and bundles."""
        return f"file://{self.state / 'store'}"

    @property
    def object_root_url(self) -> str:
        """Address of the folder that stands for all buckets."""
        return f"file://{self.state / 'objects'}"

    def store(self) -> FileStore:
        """Open the store."""
        return FileStore(self.state / "store")

    def object_root(self) -> ObjectRoot:
        """Open the object root."""
        return ObjectRoot(self.state / "objects")


def local_environment(environ: Mapping[str, str]) -> LocalEnvironment:
    """Find the state folder. Raises LocalClusterError if the environment names none."""
    return LocalEnvironment(state=state_dir(environ).absolute())
