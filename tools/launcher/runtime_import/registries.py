"""Registries of a checkout, read from the syntax tree of its Python files."""

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

from tools.launcher.runtime_import.checkout import Checkout, ImportProblem

_MAX_STEPS = 10
"""Names that are followed from one constant to the next."""

_TRANSLATION = "cloud.iris.rl_config_translation"
_REGISTRY = "skyrl_train.utils.algorithm_registry"
_LOSSES = ("skyrl_train.utils.policy_losses", "skyrl_train.utils.ppo_utils")
_ESTIMATORS = ("skyrl_train.utils.advantage_estimators", "skyrl_train.utils.ppo_utils")
_REDUCTION = "skyrl_train.utils.loss_reduction"
_ENVIRONMENTS = "skyrl_gym.envs"


class NotRead(Exception):
    """A registry cannot be read. `str()` says which file and why."""


class Fact(NamedTuple):
    """What a checkout says of one field of a manifest."""

    value: Any
    places: tuple[str, ...]
    """Files that say it, relative to the checkout."""


class Facts(NamedTuple):
    """All registries that could be read, and why the others could not."""

    read: dict[str, Fact]
    """Field of the manifest -> what was read."""
    unread: dict[str, str]
    """Field of the manifest -> reason."""
    sections: tuple[str, ...]
    """Keys that the launcher's translation looks up in a recipe by their plain name; it reads more."""


def read_registries(checkout: Checkout) -> Facts:
    """Read every registry that a checkout writes down as plain constants, enumerations or calls."""
    sources = _Sources(checkout)
    readers: dict[str, Callable[[_Sources], Fact]] = {
        "entrypoints": lambda s: s.constant(_TRANSLATION, "RL_ENTRYPOINTS", dict),
        "engine_init_kwargs_forbidden": lambda s: s.constant(
            _TRANSLATION, "SKYRL_INTERNAL_ENGINE_KWARGS", list
        ),
        "open_roots": lambda s: s.constant(_TRANSLATION, "_OPEN_CONFIG_ROOTS", list),
        "open_path_patterns": lambda s: s.constant(_TRANSLATION, "_OPTIONAL_HYDRA_PATTERNS", list),
        "loss_reductions": lambda s: s.constant(_REDUCTION, "SUPPORTED_LOSS_REDUCTIONS", list),
        "advantage_estimators": lambda s: s.registered(
            "AdvantageEstimator", "register_advantage_estimator", _ESTIMATORS
        ),
        "policy_losses": lambda s: s.registered("PolicyLossType", "register_policy_loss", _LOSSES),
        "env_classes": lambda s: s.calls(_ENVIRONMENTS, "register", "id"),
    }
    read: dict[str, Fact] = {}
    unread: dict[str, str] = {}
    for field, reader in readers.items():
        try:
            read[field] = reader(sources)
        except NotRead as reason:
            unread[field] = str(reason)
    return Facts(read, unread, sources.looked_up(_TRANSLATION, "raw"))


class _Module:
    """The top level of one Python file."""

    def __init__(self, place: str, tree: ast.Module) -> None:
        self.place = place
        self.tree = tree
        self.constants: dict[str, ast.expr] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.imports: dict[str, tuple[str, str]] = {}
        for node in tree.body:
            if isinstance(node, ast.Assign):
                self.constants |= {name.id: node.value for name in node.targets if isinstance(name, ast.Name)}
            elif (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.target, ast.Name)
                and node.value is not None
            ):
                self.constants[node.target.id] = node.value
            elif isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self.imports |= {
                    alias.asname or alias.name: (node.module, alias.name) for alias in node.names
                }


class _Sources:
    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self._modules: dict[str, _Module] = {}

    def module(self, name: str) -> _Module:
        if name not in self._modules:
            path = name.replace(".", "/")
            place = self._checkout.find(f"{path}.py") or self._checkout.find(f"{path}/__init__.py")
            if place is None:
                raise NotRead(f"there is no module {name}")
            try:
                tree = ast.parse(self._checkout.read(place))
            except ImportProblem as problem:
                raise NotRead(str(problem)) from None
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                line = f" at line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
                raise NotRead(f"{place} is not readable Python{line}") from None
            self._modules[name] = _Module(place, tree)
        return self._modules[name]

    def constant(self, module: str, name: str, kind: type) -> Fact:
        source = self.module(module)
        if name not in source.constants:
            raise NotRead(f"{source.place} has no constant {name}")
        value = self._value(source.constants[name], source, _MAX_STEPS)
        if type(value) is not kind or not all(isinstance(item, str) for item in _flat(value)):
            raise NotRead(
                f"{name} in {source.place} is no plain {'mapping' if kind is dict else 'list'} of text"
            )
        return Fact(value, (source.place,))

    def registered(self, enumeration: str, decorator: str, modules: tuple[str, ...]) -> Fact:
        """Members of an enumeration of the registry, then names that decorators beside it register."""
        values: list[str] = []
        places: list[str] = []
        for name in dict.fromkeys((_REGISTRY, *modules)):
            try:
                source = self.module(name)
            except NotRead:
                continue
            if enumeration in source.classes:
                values += self._members(source.classes[enumeration], source).values()
                places.append(source.place)
            found = [
                self._value(call.args[0], source, _MAX_STEPS)
                for call in ast.walk(source.tree)
                if isinstance(call, ast.Call) and _called(call) == decorator and call.args
            ]
            names = [value for value in found if isinstance(value, str)]
            if names:
                values += names
                places.append(source.place)
        if not values:
            raise NotRead(f"no {enumeration} in {', '.join((_REGISTRY, *modules))}")
        return Fact(list(dict.fromkeys(values)), tuple(dict.fromkeys(places)))

    def calls(self, module: str, function: str, keyword: str) -> Fact:
        """The text that calls at the top level of `module` pass as `keyword`."""
        source = self.module(module)
        values = [
            self._value(argument.value, source, _MAX_STEPS)
            for node in source.tree.body
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and _called(node.value) == function
            for argument in node.value.keywords
            if argument.arg == keyword
        ]
        if not values or not all(isinstance(value, str) for value in values):
            raise NotRead(f"{source.place} has no plain {function}({keyword}=...) calls")
        return Fact(list(dict.fromkeys(values)), (source.place,))

    def looked_up(self, module: str, mapping: str) -> tuple[str, ...]:
        """The names that `module` reads with `<mapping>.get(name)`, sorted; none without the module."""
        try:
            source = self.module(module)
        except NotRead:
            return ()
        calls = [
            node
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "get"
            and ast.unparse(node.func.value).rpartition(".")[2] == mapping
        ]
        names = [call.args[0].value for call in calls if call.args and isinstance(call.args[0], ast.Constant)]
        return tuple(sorted({name for name in names if isinstance(name, str)}))

    def _value(self, node: ast.expr, source: _Module, steps: int) -> Any:
        """The plain value of an expression; None where it is none."""
        if steps == 0:
            return None
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return [self._value(item, source, steps) for item in node.elts]
        if isinstance(node, ast.Dict):
            keys = [self._value(key, source, steps) if key is not None else None for key in node.keys]
            values = [self._value(value, source, steps) for value in node.values]
            return dict(zip(keys, values, strict=True)) if all(isinstance(key, str) for key in keys) else None
        if isinstance(node, ast.Name):
            return self._named(node.id, source, steps - 1)
        if isinstance(node, ast.Attribute):
            member = node.value if node.attr == "value" and isinstance(node.value, ast.Attribute) else node
            return self._member(member, source, steps - 1) if isinstance(member.value, ast.Name) else None
        wrapped = isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords
        if wrapped and _called(node) in ("frozenset", "tuple", "list", "set", "dict", "MappingProxyType"):
            return self._value(node.args[0], source, steps - 1)  # type: ignore[attr-defined]  # a Call
        return None

    def _named(self, name: str, source: _Module, steps: int) -> Any:
        if name in source.constants:
            return self._value(source.constants[name], source, steps)
        if name in source.imports:
            module, original = source.imports[name]
            return self._named(original, self.module(module), steps) if steps > 0 else None
        return None

    def _member(self, node: ast.Attribute, source: _Module, steps: int) -> Any:
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        while name not in source.classes and name in source.imports and steps > 0:
            module, name = source.imports[name]
            source, steps = self.module(module), steps - 1
        return self._members(source.classes[name], source).get(node.attr) if name in source.classes else None

    def _members(self, enumeration: ast.ClassDef, source: _Module) -> dict[str, str]:
        members = {}
        for node in enumeration.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                value = self._value(node.value, source, _MAX_STEPS)
                if isinstance(value, str):
                    members[node.targets[0].id] = value
        return members


def _called(node: ast.expr) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return (
        function.id
        if isinstance(function, ast.Name)
        else function.attr
        if isinstance(function, ast.Attribute)
        else ""
    )


def _flat(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value
