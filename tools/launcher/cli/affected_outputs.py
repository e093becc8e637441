"""What `affected` reads of one experiment's outputs."""

import json

from tools.launcher.compare.beside import beside_digest
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
        content = json.loads(graph)
        versions = [step["version"] for step in content["steps"] if step["kind"] == "skyrl"]
        beside = beside_digest(content)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a graph document: {type(error).__name__}: {error}") from None
    if len(versions) != 1:
        raise ValueError(f"a graph document has one skyrl step, this one has {len(versions)}")
    return ExperimentDigests(version=versions[0], recipe=digests.recipe, launch=digests.launch, graph=beside)
