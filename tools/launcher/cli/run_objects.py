"""Reading what a run left: in the folder that stands for all buckets, or in the buckets themselves."""

import threading
from collections.abc import Callable

from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.store.object_store import StoreUnavailable
from tools.launcher.store.objects import FolderObjects, ObjectReader

ANSWER_SECONDS = 30.0
"""How long a bucket may take for one small object. The clients themselves would try for many minutes."""


def objects_of(place: LaunchPlace) -> ObjectReader | None:
    """Return the objects of a run's place; None if they are on somebody else's machine."""
    folder = objects_in_folder(place)
    if folder is not None:
        return folder
    if place.is_local:
        return None
    # Imported late: the libraries take seconds, and a local run has no use for them.
    from tools.launcher.coordinator.bucket_objects import BucketObjects

    return ImpatientObjects(BucketObjects(), ANSWER_SECONDS)


def objects_in_folder(place: LaunchPlace) -> FolderObjects | None:
    """Return the objects of a place that has a folder for all buckets; None where a server would be asked."""
    folder = place.objects()
    return None if folder is None else FolderObjects(folder)


class ImpatientObjects:
    """Objects whose place must answer in time."""

    def __init__(self, objects: ObjectReader, seconds: float) -> None:
        """Wrap `objects`; one answer may take `seconds`."""
        self._objects, self._seconds = objects, seconds

    def read(self, uri: str) -> bytes | None:
        """See `ObjectReader`."""
        return self._answered(uri, f"read {uri}", lambda: self._objects.read(uri))

    def exists(self, uri: str) -> bool:
        """See `ObjectReader`."""
        return self._answered(uri, f"look for {uri}", lambda: self._objects.exists(uri))

    def _answered[Answer](self, uri: str, doing: str, ask: Callable[[], Answer]) -> Answer:
        answers: list[Answer] = []
        errors: list[Exception] = []

        def work() -> None:
            try:
                answers.append(ask())
            except Exception as error:  # Of whatever kind: it is raised again where the answer is waited for.
                errors.append(error)

        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        worker.join(self._seconds)
        if errors:
            raise errors[0]
        if not answers:
            scheme, _, rest = uri.partition("://")
            bucket = f"{scheme}://{rest.partition('/')[0]}"
            raise StoreUnavailable(bucket, doing, f"no answer for {self._seconds:g} s")
        return answers[0]
