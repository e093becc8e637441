import enum
import sys
from pathlib import Path
from typing import Any, Literal

import pytest

from tools.launcher.catalog.cards import ClusterCard, HfExport, ModelCard
from tools.launcher.catalog.load import load_runtime_manifest
from tools.launcher.rl import ArtifactStep, BuildInputs, hf_model, rl_build_options
from tools.launcher.rl.build_options import BuildOptionError
from tools.launcher.rl.inputs import UndeclaredInput

MODEL = ModelCard(kind="model", name="toy")
EXPORT = HfExport(name="team/toy", version="2026.01.15", fingerprint="0123abcd")
RUNTIME = load_runtime_manifest(
    Path("third_party/marinskyrl/81ae0ef7.yaml").read_bytes(), source="81ae0ef7.yaml"
)
INPUTS = BuildInputs(
    version="2026.01.15",
    runtime=RUNTIME,
    cluster=ClusterCard(kind="cluster", name="c"),
    models={"toy": MODEL},
    datasets={},
)


class Size(enum.Enum):
    SMALL = "small"


def step() -> ArtifactStep:
    return hf_model(MODEL, EXPORT)


def test_options_are_typed_from_the_signature():
    seen: dict[str, Any] = {}

    @rl_build_options
    def main(
        inputs: BuildInputs, scale: Literal["smoke", 2], kl: bool, seed: int, lr: float, note: str, size: Size
    ) -> ArtifactStep:
        seen.update(locals())
        return step()

    options = {"scale": "2", "kl": "true", "seed": "17", "lr": "1e-6", "note": "x=y", "size": "small"}
    assert main.build(INPUTS, options) == (step(),)
    seen.pop("seen", None)
    assert seen == {
        "inputs": INPUTS,
        "scale": 2,
        "kl": True,
        "seed": 17,
        "lr": 1e-06,
        "note": "x=y",
        "size": Size.SMALL,
    }


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "option 'scale' of main() has no value. Add options = {\"scale\": ...} with one of smoke, full"),
        (
            {"scale": "big"},
            "option scale='big' is not one of smoke, full. Correct it in `options` of the target, or `axes` of its sweep",
        ),
        (
            {"scale": "full", "x": "1"},
            "main() takes no option 'x'. Its options: scale. Take it out of `options` of the target, or `axes` of its sweep",
        ),
        (
            {"x": "1", "y": "2"},
            "of its sweep\n    main() takes no option 'y'. Its options: scale. Take it out of `options` of the target, or `axes` of its sweep\n    option 'scale' of main() has no value. Add options",
        ),
    ],
)
def test_bad_options_have_a_clear_sentence(options, sentence):
    @rl_build_options
    def main(scale: Literal["smoke", "full"]) -> ArtifactStep:
        return step()

    with pytest.raises(BuildOptionError) as caught:
        main.build(INPUTS, options)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("typed", ["learning_rat", "learnin_rate", "learning_rate_"])
def test_a_misspelt_option_is_one_sentence(typed):
    @rl_build_options
    def main(learning_rate: float, seed: int) -> ArtifactStep:
        return step()

    with pytest.raises(BuildOptionError) as caught:
        main.build(INPUTS, {typed: "1e-6", "seed": "17"})
    assert str(caught.value) == (
        f"main() takes no option '{typed}'; did you mean 'learning_rate'? Rename it in `options` of the target, "
        "or `axes` of its sweep"
    )


def test_of_two_misspellings_each_option_is_meant_once():
    @rl_build_options
    def main(learning_rate: float) -> ArtifactStep:
        return step()

    with pytest.raises(BuildOptionError) as caught:
        main.build(INPUTS, {"learning_rat": "1", "learning_rates": "1"})
    first, second = str(caught.value).split("\n")
    assert "did you mean 'learning_rate'?" in first and "did you mean" not in second


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int, "1.5"),
        (int, "1_0"),
        (int, " 5 "),
        (int, "٣"),
        (int, "9" * 5000),
        (float, "x"),
        (float, "nan"),
        (float, "1e400"),
        (bool, "True"),
        (bool, "1"),
    ],
)
def test_text_of_another_type_is_refused(annotation, text):
    def main(value):
        return step()

    main.__annotations__ = {"value": annotation}
    with pytest.raises(BuildOptionError, match="option value='.*' is not") as caught:
        rl_build_options(main).build(INPUTS, {"value": text})
    assert len(str(caught.value)) < 200


def _no_annotation(scale):
    return step()


def _default(scale: int = 1):
    return step()


def _list(scale: list[int]):
    return step()


def _star(*scale: int):
    return step()


def _positional(scale: int, /):
    return step()


async def _async(scale: int):
    return step()


def _generator(scale: int):
    yield step()


class _Same(enum.Enum):
    NUMBER = 1
    TEXT = "1"


def _same_texts(scale: _Same):
    return step()


def _two(a: BuildInputs, b: BuildInputs):
    return step()


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (_no_annotation, "parameter 'scale' has no annotation"),
        (_default, "option 'scale' has a default. Remove it and state the value in options of the target"),
        (_list, "option 'scale' has the type list[int]. Use bool, int, float, str, an Enum or a Literal"),
        (_star, "'*scale: int' cannot be typed. Name each option"),
        (_positional, "'scale' is positional-only. Remove the / from the signature"),
        (_async, "main() is async or yields. Write a plain function"),
        (_generator, "main() is async or yields. Write a plain function"),
        (_same_texts, "two values of option 'scale' are both written '1'. Rename one of them"),
        (_two, "'a' and 'b' are both BuildInputs. Keep one"),
    ],
)
def test_bad_signatures_are_refused(function, sentence):
    with pytest.raises(BuildOptionError) as caught:
        rl_build_options(function)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("result", "what"), [(None, "nothing"), ("x", "a str"), ((), "a tuple"), ([1], "a list")]
)
def test_main_returns_steps(result, what):
    @rl_build_options
    def main() -> Any:
        return result

    sentence = rf"main\(\) returned {what}\. Return one ArtifactStep, or a tuple of them"
    with pytest.raises(BuildOptionError, match=sentence):
        main.build(INPUTS, {})


def test_undeclared_cards_are_refused():
    with pytest.raises(UndeclaredInput) as caught:
        INPUTS.model("qwen")
    assert (
        "no card named 'qwen' is declared; `models` of the target has: toy. Add the card's label to `models`, or ask for one that is there"
        in str(caught.value)
    )
    with pytest.raises(UndeclaredInput, match="`datasets` of the target has: none"):
        INPUTS.dataset("gsm8k")
    assert INPUTS.model("toy") is MODEL
    assert INPUTS.skyrl_runtime("fsdp").commit == RUNTIME.commit


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
