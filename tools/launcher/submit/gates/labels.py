"""Targets of an experiment, as they are typed."""


def experiment_name(label: str) -> str:
    """Return the name of `//package:name`."""
    return label.rpartition(":")[2]


def verb_target(label: str, verb: str) -> str:
    """Return the target of a verb of the experiment `//package:name`.

    `rl_experiment` gives the verbs bare names where the experiment is called like its package.
    """
    package, _, name = label.rpartition(":")
    if package.rpartition("/")[2] == name:
        return f"{package}:{verb}"
    return f"{package}:{name}.{verb}"
