"""Rules about the names that rl_experiment derives from."""

VERBS = ["launch", "pin", "plan", "rehearse", "report"]

NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

def experiment_name_problem(name, package, macro = "rl_experiment"):
    """Says what is wrong with the name of an experiment.

    Args:
      name: name of the rl_experiment.
      package: package it stands in, for the message.
      macro: what is declared, for the message.

    Returns:
      A sentence with label, value and fix; None if the name is good.
    """
    if name in VERBS:
        return "{} //{}:{}: '{}' is the name of a verb. Choose another name.".format(macro, package, name, name)
    if not name:
        return "{} in //{}: the name is empty. Use letters, digits and '_'.".format(macro, package)
    bad = [character for character in name.elems() if character not in NAME_CHARACTERS]
    if not bad:
        return None
    better = "".join([character if character in NAME_CHARACTERS else "_" for character in name.elems()])
    return "{} //{}:{}: the name has '{}'. Use letters, digits and '_', such as '{}', because targets like '{}.launch' are derived from it.".format(
        macro,
        package,
        name,
        bad[0],
        better,
        better,
    )

def option_problem(option, value):
    """Says what is wrong with one entry of `options`.

    Args:
      option: name of the option.
      value: its value as BUILD.bazel gives it.

    Returns:
      A sentence with name, value and fix; None if the entry is good.
    """
    if not option or [character for character in option.elems() if character not in NAME_CHARACTERS]:
        return "options has the name '{}'. Give the name of a parameter of main().".format(option)
    if type(value) not in ["bool", "int", "float", "string"]:
        return "option '{}' is {}, of the type {}. Give text, a number or a boolean.".format(option, value, type(value))
    return line_problem("option '{}'".format(option), option_text(value))

def line_problem(what, text):
    """Says so when a text has line breaks, which would be further arguments of the build action.

    Args:
      what: how the message calls the text.
      text: the text.

    Returns:
      A sentence, or None.
    """
    if "\n" in text or "\r" in text:
        return "{} has a line break. Write it on one line.".format(what)
    return None

def option_text(value):
    """Returns the text of an option's value as `main()` reads it; booleans are `true` and `false`."""
    if type(value) == "bool":
        return "true" if value else "false"
    return str(value)
