"""Text of documents and records on a terminal."""


def printable(text: str) -> str:
    """Return `text` on one line, and free of terminal codes: other characters become spaces."""
    if text.isprintable():  # Nearly always, and a hundredth of the time.
        return text
    return "".join(character if character.isprintable() else " " for character in text)


def printable_lines(text: str) -> str:
    """Return `text` free of terminal codes, with its lines as they are."""
    return "\n".join(map(printable, text.split("\n")))
