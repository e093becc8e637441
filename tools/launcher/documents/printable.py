"""Text of documents on a terminal."""


def printable(text: str) -> str:
    """Return `text` on one line, and free of terminal codes: other characters become spaces."""
    if text.isprintable():  # Nearly always, and a hundredth of the time.
        return text
    return "".join(character if character.isprintable() else " " for character in text)
