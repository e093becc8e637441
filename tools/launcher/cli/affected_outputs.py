"""What `affected` reads of one experiment's outputs."""

import json

from tools.launcher.compare.digest_manifest import ExperimentDigests
from tools.launcher.render.digests import read_digest_file


def digests_of_outputs(digest: bytes, graph: bytes) -> ExperimentDigests:
    """Return an experiment's digests and the version of its run.

    Args:
        digest: content of `<name>.digest`.
        graph: content of `<name>.graph.json`.

    Raises:
        ValueError: they have another form.
    """
    digests = read_digest_file(digest)
    try:
        steps = json.loads(graph)["steps"]
        versions = [step["version"] for step in steps if step["kind"] == "skyrl"]
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a graph document: {type(error).__name__}: {error}") from None
    if len(versions) != 1:
        raise ValueError(f"a graph document has one skyrl step, this one has {len(versions)}")
    return ExperimentDigests(version=versions[0], recipe=digests.recipe, launch=digests.launch)
