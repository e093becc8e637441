"""`rl_build_options`: the only way into an experiment.

It types the options of `main` from its signature. The build action calls it with the text of
the target's `options`; there is no `--run` and no other way to execute an experiment.
"""

import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal

from tools.launcher.graph.step import ArtifactStep
from tools.launcher.rl.inputs import BuildInputs

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
            BuildOptionError: unknown or missing option, text that is not of the option's type,
                or a result which is no ArtifactStep.
        """
        unknown, missing = sorted(set(options) - set(self.options)), sorted(set(self.options) - set(options))
        if unknown:
            raise BuildOptionError(
                f"options has '{unknown[0]}', which main() does not take. "
                f"Its options: {', '.join(self.options) or 'none'}"
            )
        if missing:
            raise BuildOptionError(
                f"option '{missing[0]}' of main() has no value. "
                f'Add options = {{"{missing[0]}": ...}} with {_describe(self.options[missing[0]])}'
            )
        arguments = {
            name: _parse(name, options[name], annotation) for name, annotation in self.options.items()
        }
        if self._inputs_parameter is not None:
            arguments[self._inputs_parameter] = inputs
        result = self._function(**arguments)
        terminals = result if isinstance(result, tuple) else (result,)
        if not terminals or not all(isinstance(step, ArtifactStep) for step in terminals):
            raise BuildOptionError(
                f"main() returned {type(result).__name__}. Return one ArtifactStep, or a tuple of them"
            )
        return terminals


def rl_build_options(function: Callable[..., Any]) -> RlBuildMain:
    """Decorate an experiment's `main`.

    Every parameter needs an annotation: `BuildInputs` (at most one) receives the declared
    inputs; `bool`, `int`, `float`, `str`, an Enum or a Literal makes an option. Defaults are
    refused, because a value that BUILD.bazel does not show would be a hidden decision.

    Raises:
        BuildOptionError: for a signature that breaks these rules.
    """
    annotations = typing.get_type_hints(function)
    options: dict[str, Any] = {}
    inputs_parameter: str | None = None
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise BuildOptionError(f"main(): '{parameter}' cannot be typed. Name each option")
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
    if typing.get_origin(annotation) is Literal:
        return {
            str(member).lower() if isinstance(member, bool) else str(member): member
            for member in typing.get_args(annotation)
        }
    if annotation is bool:
        return dict(_TRUTH)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return {str(member.value): member for member in annotation}
    return None


def _describe(annotation: Any) -> str:
    members = _members(annotation)
    return f"one of {', '.join(members)}" if members is not None else f"a value of type {annotation.__name__}"


def _parse(name: str, text: str, annotation: Any) -> Any:
    members = _members(annotation)
    if members is not None:
        if text not in members:
            raise BuildOptionError(f"option {name}='{text}' is not {_describe(annotation)}. Correct options")
        return members[text]
    if annotation is str:
        return text
    try:
        return annotation(text)
    except ValueError:
        raise BuildOptionError(
            f"option {name}='{text}' is not {_describe(annotation)}. Correct options"
        ) from None
