"""Rules about the names that rl_experiment derives from."""

VERBS = ["launch", "plan", "rehearse"]

def experiment_name_problem(name, package):
    """Says what is wrong with the name of an experiment.

    Args:
      name: name of the rl_experiment.
      package: package it stands in, for the message.

    Returns:
      A sentence with label, value and fix; None if the name is good.
    """
    if name in VERBS:
        return "rl_experiment //{}:{}: '{}' is the name of a verb. Choose another name.".format(package, name, name)
    for character in name.elems():
        if not (character.isalnum() or character == "_"):
            return "rl_experiment //{}:{}: the name has '{}'. Use letters, digits and '_', such as '{}', because targets like '{}.launch' are derived from it.".format(
                package,
                name,
                character,
                name.replace(character, "_"),
                name.replace(character, "_"),
            )
    return None

def option_text(value):
    """Returns the text of an option's value as `main()` reads it; booleans are `true` and `false`."""
    if type(value) == "bool":
        return "true" if value else "false"
    return str(value)
