"""Toy environments, one for each `environment.env_class` a rehearsal knows.

Every prompt of these environments has a quantity from 0 to 9 and the right answer is that number.
The policy is given the quantity (a fixed "encoder" reads the prompt) but not what to say about it:
which of the ten answers a quantity wants is what the policy gradient has to find out.
"""

import re
from collections.abc import Callable
from typing import Final

import numpy as np
from pydantic import BaseModel, ConfigDict

ANSWERS: Final = 10
TRAIN_ROWS: Final = 512
VALIDATION_ROWS: Final = 64
# Validation rows are drawn from another stream than training rows.
_STREAMS: Final = {"train": 0, "validation": 1}
_FILLERS: Final = ("dog", "sun", "tree", "boat", "red", "stone")


class Row(BaseModel):
    """One prompt and its right answer (0 to 9)."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    prompt: str
    answer: int


class ToyEnvironment(BaseModel):
    """A toy task.

    Attributes:
        name: the env_class it was asked for.
        stand_in: what it really is, in words, for people who read the log.
        write: makes the prompt for a quantity from a random generator.
        read: the encoder, the quantity which a prompt holds.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")

    name: str
    stand_in: str
    write: Callable[[int, np.random.Generator], str]
    read: Callable[[str], int]


def _write_cats(quantity: int, random: np.random.Generator) -> str:
    words = ["cat"] * quantity + [str(random.choice(_FILLERS)) for _ in range(int(random.integers(1, 6)))]
    return "How often does the sentence say cat? " + " ".join(
        words[i] for i in random.permutation(len(words))
    )


def _read_cats(prompt: str) -> int:
    return prompt.partition("?")[2].split().count("cat")


def _write_addition(quantity: int, random: np.random.Generator) -> str:
    first = int(random.integers(0, quantity + 1))
    return f"Ann has {first} apples and gets {quantity - first} more. How many has she?"


def _read_addition(prompt: str) -> int:
    return sum(int(number) for number in re.findall(r"\d+", prompt))


def environment_for(env_class: str) -> ToyEnvironment:
    """Return the toy environment which stands in for `env_class`.

    Any class without a toy of its own gets the additions, and says so in `stand_in`.
    """
    if env_class == "cat_count":
        return ToyEnvironment(
            name=env_class,
            stand_in="counting the word cat, answers 0 to 9",
            write=_write_cats,
            read=_read_cats,
        )
    additions = "additions with results 0 to 9"
    return ToyEnvironment(
        name=env_class,
        stand_in=additions if env_class == "gsm8k" else f"{additions} (no toy of its own for {env_class!r})",
        write=_write_addition,
        read=_read_addition,
    )


def make_rows(environment: ToyEnvironment, split: str, count: int, seed: int) -> tuple[Row, ...]:
    """Draw `count` rows of a split ("train" or "validation"); equal arguments give equal rows."""
    random = np.random.Generator(np.random.Philox(key=[seed, _STREAMS[split]]))
    quantities = [int(random.integers(0, ANSWERS)) for _ in range(count)]
    return tuple(Row(prompt=environment.write(quantity, random), answer=quantity) for quantity in quantities)
