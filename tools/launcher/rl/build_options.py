"""`rl_build_options`: the only way into an experiment.

It types the options of `main` from its signature. The build action calls it with the text of
the target's `options`; there is no `--run` and no other way to execute an experiment.
"""

import difflib
import enum
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal

from tools.launcher.graph.step import ArtifactStep
from tools.launcher.rl.inputs import BuildInputs

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_SHOWN_CHARACTERS = 80

_WHERE = "`options` of the target, or `axes` of its sweep"
"""A point of a sweep is a target like any other, and does not know which of its options are axes."""

_TRUTH = {"true": True, "false": False}


class BuildOptionError(ValueError):
    """An option, the signature or the result of `main` is wrong. The message says what to write."""


class RlBuildMain:
    """An experiment's `main` together with its typed options."""

    def __init__(
        self, function: Callable[..., Any], options: Mapping[str, Any], inputs_parameter: str | None
    ) -> None:
        self._function = function
        self._inputs_parameter = inputs_parameter
        self.options: Mapping[str, Any] = types.MappingProxyType(dict(options))
        """Option name -> annotation."""

    def build(self, inputs: BuildInputs, options: Mapping[str, str]) -> tuple[ArtifactStep, ...]:
        """Call `main` and return its terminal steps.

        Args:
            inputs: what the target declares.
            options: option name -> text, exactly one for every option.

        Raises:
            BuildOptionError: unknown or missing options, text that is not of its option's type
                (all of them in one message), or a result which is no ArtifactStep.
        """
        arguments, problems = self._arguments(options)
        if problems:
            raise BuildOptionError("\n    ".join(problems))
        if self._inputs_parameter is not None:
            arguments[self._inputs_parameter] = inputs
        result = self._function(**arguments)
        terminals = result if isinstance(result, tuple) else (result,)
        if not terminals or not all(isinstance(step, ArtifactStep) for step in terminals):
            what = "nothing" if result is None else f"a {type(result).__name__}"
            raise BuildOptionError(f"main() returned {what}. Return one ArtifactStep, or a tuple of them")
        return terminals

    def _arguments(self, options: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
        """Option name -> value, and what is wrong with the texts."""
        problems: list[str] = []
        arguments: dict[str, Any] = {}
        missing = [name for name in self.options if name not in options]
        for name in sorted(set(options) - set(self.options)):
            near = next(iter(difflib.get_close_matches(name[:_SHOWN_CHARACTERS], missing, n=1)), None)
            problem = f"main() takes no option '{_cut(name)}'"
            if near is None:
                problems.append(
                    f"{problem}. Its options: {', '.join(self.options) or 'none'}. Take it out of {_WHERE}"
                )
            else:
                missing.remove(near)
                problems.append(f"{problem}; did you mean '{near}'? Rename it in {_WHERE}")
        for name, annotation in self.options.items():
            if name not in options:
                if name not in missing:
                    continue
                problems.append(
                    f"option '{name}' of main() has no value. "
                    f'Add options = {{"{name}": ...}} with {_describe(annotation)}'
                )
                continue
            try:
                arguments[name] = _parse(name, options[name], annotation)
            except BuildOptionError as error:
                problems.append(str(error))
        return arguments, problems


def rl_build_options(function: Callable[..., Any]) -> RlBuildMain:
    """Decorate an experiment's `main`.

    Every parameter needs an annotation: `BuildInputs` (at most one) receives the declared
    inputs; `bool`, `int`, `float`, `str`, an Enum or a Literal makes an option. Defaults are
    refused, because a value that BUILD.bazel does not show would be a hidden decision.

    Raises:
        BuildOptionError: for a signature that breaks these rules.
    """
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise BuildOptionError(
            "main() is async or yields. Write a plain function that returns the terminal step"
        )
    annotations = typing.get_type_hints(function)
    options: dict[str, Any] = {}
    inputs_parameter: str | None = None
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise BuildOptionError(f"main(): '{parameter}' cannot be typed. Name each option")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise BuildOptionError(f"main(): '{name}' is positional-only. Remove the / from the signature")
        if name not in annotations:
            raise BuildOptionError(
                f"main(): parameter '{name}' has no annotation. Write {name}: Literal[...] or a type"
            )
        annotation = annotations[name]
        if annotation is BuildInputs:
            if inputs_parameter is not None:
                raise BuildOptionError(
                    f"main(): '{inputs_parameter}' and '{name}' are both BuildInputs. Keep one"
                )
            inputs_parameter = name
            continue
        if not _is_supported(annotation):
            raise BuildOptionError(
                f"main(): option '{name}' has the type {annotation!r}. Use bool, int, float, str, an Enum or a Literal"
            )
        twice = _ambiguous_text(annotation)
        if twice is not None:
            raise BuildOptionError(
                f"main(): two values of option '{name}' are both written '{twice}'. Rename one of them"
            )
        if parameter.default is not parameter.empty:
            raise BuildOptionError(
                f"main(): option '{name}' has a default. Remove it and state the value in options of the target"
            )
        options[name] = annotation
    return RlBuildMain(function, options, inputs_parameter)


def _is_supported(annotation: Any) -> bool:
    if typing.get_origin(annotation) is Literal:
        return all(isinstance(member, str | int) for member in typing.get_args(annotation))
    return annotation in (bool, int, float, str) or (
        isinstance(annotation, type) and issubclass(annotation, enum.Enum)
    )


def _members(annotation: Any) -> dict[str, Any] | None:
    """Text -> value of a closed choice; None for open types."""
    pairs = _texts(annotation)
    return dict(pairs) if pairs is not None else None


def _texts(annotation: Any) -> list[tuple[str, Any]] | None:
    if typing.get_origin(annotation) is Literal:
        return [
            (str(member).lower() if isinstance(member, bool) else str(member), member)
            for member in typing.get_args(annotation)
        ]
    if annotation is bool:
        return list(_TRUTH.items())
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return [(str(member.value), member) for member in annotation]
    return None


def _ambiguous_text(annotation: Any) -> str | None:
    texts = [text for text, _ in _texts(annotation) or ()]
    return next((text for text in texts if texts.count(text) > 1), None)


def _describe(annotation: Any) -> str:
    members = _members(annotation)
    return f"one of {', '.join(members)}" if members is not None else f"a value of type {annotation.__name__}"


def _parse(name: str, text: str, annotation: Any) -> Any:
    members = _members(annotation)
    if members is not None:
        if text in members:
            return members[text]
    elif annotation is str:
        return text
    elif annotation is int and _INTEGER.fullmatch(text):
        return int(text)
    elif annotation is float:
        number = _finite(text)
        if number is not None:
            return number
    raise BuildOptionError(
        f"option {name}='{_cut(text)}' is not {_describe(annotation)}. Correct it in {_WHERE}"
    )


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
