"""The way to a cluster of others: its Iris configuration, the tunnel or login it needs, and a first answer.

Iris's own connecting (`iris.cli.connect`) does the work. What it raises is made for its command line and is
hardly documented, so everything is turned into one sentence that names the cluster and what helps.
"""

import contextlib
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.launcher.iris.gateway import IrisGateway, brief
from tools.launcher.iris.jobs import IrisError, IrisUnreachable, JobRefused, LoginNeeded
from tools.launcher.iris.route import Route

if TYPE_CHECKING:
    from iris.cli.connect import ControllerEndpoint
    from iris.cluster.config import IrisClusterConfig
    from rigging.credentials import ClientCredentials

OPENING_SECONDS = 100.0
"""How long a tunnel may take to open. Iris itself gives up after 90 s (Kubernetes) or some 60 s (SSH), and
then says why and ends what it started."""

_USER_CONFIGS = "~/.config/marin/clusters"


class ClusterNotOpened(IrisError):
    """The way to a cluster could not be opened; nothing was changed there.

    Attributes:
        problem: what is wrong, a clause that names the cluster and its configuration.
        fix: what helps, without its last full stop.
    """

    def __init__(self, cluster: str, why: str, fix: str) -> None:
        self.fix = fix
        self.problem = f"{cluster} could not be reached: {why}"
        super().__init__(f"{self.problem}. {fix}")


@contextlib.contextmanager
def open_cluster(
    route: Route, *, give_up_after_seconds: float, opening_seconds: float = OPENING_SECONDS
) -> Iterator[IrisGateway]:
    """Open the way to a cluster's controller, and see that it answers and lets us in.

    Args:
        route: of the scheduler `iris`.
        give_up_after_seconds: how long one question may take, in seconds.
        opening_seconds: how long the tunnel may take to open, in seconds.

    Raises:
        ClusterNotOpened: no such configuration, an unusable one, no tunnel, no answer, or no login.
        ValueError: the route is of the embedded cluster, which `local.control` opens.
    """
    if route.scheduler != "iris":
        raise ValueError(f"no way to a remote cluster: the scheduler is {route.scheduler}")
    with contextlib.ExitStack() as stack:
        if route.controller is not None:
            name = f"the controller {route.controller}"
            login = "Set MARIN_CLUSTER_TOKEN to a token of that cluster"
            gateway = IrisGateway(
                route.controller,
                give_up_after_seconds=give_up_after_seconds,
                credentials=_bearer_of_the_environment(route.controller),
            )
        else:
            assert route.config is not None  # Route sees to it
            config_file = find_config(route.config)
            name, cluster = _loaded(config_file)
            login = f"Log in with `iris --cluster={cluster} login`"
            endpoint = stack.enter_context(_endpoint(config_file, name, cluster, opening_seconds))
            gateway = IrisGateway(
                endpoint.url if "://" in endpoint.url else f"http://{endpoint.url}",
                give_up_after_seconds=give_up_after_seconds,
                credentials=endpoint.credentials,
            )
        stack.enter_context(gateway)
        try:
            gateway.check_in()
        except IrisUnreachable as error:
            raise ClusterNotOpened(
                name,
                f"{error.url} did not answer within {error.seconds:g} s",
                "Check that the cluster runs and that this machine may reach it, or give the address of a way of "
                "your own with --controller=URL; then run the command again",
            ) from None
        except LoginNeeded as error:
            raise ClusterNotOpened(
                name, _clause(error.reason), f"{login}, then run the command again"
            ) from None
        except JobRefused as error:
            raise ClusterNotOpened(
                name,
                f"it answers, but not as an Iris controller that lets you in: {error.reason}",
                f"Check the address. {login}, if it is right",
            ) from None
        yield gateway


def _bearer_of_the_environment(url: str) -> "ClientCredentials":
    from iris.cli.connect import client_credentials, resolve_cluster_name

    return client_credentials(None, resolve_cluster_name(None, url, None))


def find_config(named: str) -> Path:
    """Return the Iris configuration file behind what a launch document or card names.

    That is the file itself where it exists (in a Marin checkout), else the one of the same name among those
    that Iris knows: the user's own, the checkout's, the ones in the marin-iris package.

    Args:
        named: path or name, such as `lib/iris/config/marin.yaml`.

    Raises:
        ClusterNotOpened: there is none.
    """
    from iris.cli.connect import IRIS_CLUSTER_CONFIG_DIRS
    from rigging.config_discovery import list_cluster_configs

    file = Path(named).expanduser()
    if file.is_file():
        return file
    known: dict[str, Path] = list_cluster_configs(IRIS_CLUSTER_CONFIG_DIRS)
    stem = file.stem if file.suffix in (".yaml", ".yml") else file.name
    if stem not in known:
        raise ClusterNotOpened(
            f"cluster {stem}",
            f"there is no Iris configuration {named}, and none called {stem} among the known ones: "
            f"{', '.join(sorted(known))}",
            f"Put it at {_USER_CONFIGS}/{stem}.yaml, correct the name in the cluster card, or give the address of "
            "the controller with --controller=URL",
        )
    return known[stem]


def _loaded(config_file: Path) -> tuple[str, str]:
    """Read a configuration; how sentences call its cluster, and the name that `iris --cluster` takes."""
    from iris.cluster.config import load_config

    name = f"cluster {config_file.stem} (Iris configuration {config_file})"
    fix = "Correct that file, or give the address of the controller with --controller=URL"
    try:
        config = load_config(config_file)
    except Exception as error:  # Of a file of others: any part of it can be of the wrong kind.
        raise ClusterNotOpened(name, f"its configuration cannot be read: {_said(error)}", fix) from None
    if config.controller.controller_kind() == "local" and (
        config.auth is None or config.auth.provider_kind() != "iap"
    ):
        raise ClusterNotOpened(
            name,
            "its controller is `local`, one that would live and die with this command",
            "Name a cluster that runs, or give the address of its controller with --controller=URL",
        )
    kubeconfig = _kubeconfig(config)
    if kubeconfig and not Path(kubeconfig).expanduser().is_file():
        raise ClusterNotOpened(
            name,
            f"there is no kubeconfig {kubeconfig}, which its configuration names",
            "Download it from the provider's console to that path, or give the address of the controller with "
            "--controller=URL",
        )
    return name, config_file.stem


def _kubeconfig(config: "IrisClusterConfig") -> str:
    """The file that the tunnel needs, "" if it needs none."""
    if config.auth is not None and config.auth.provider_kind() == "iap":
        return ""  # Reached over HTTPS, without a tunnel.
    return config.platform.coreweave.kubeconfig_path if config.platform.coreweave is not None else ""


@contextlib.contextmanager
def _endpoint(
    config_file: Path, name: str, cluster: str, opening_seconds: float
) -> Iterator["ControllerEndpoint"]:
    opening = _Opening(config_file)
    endpoint = opening.wait(opening_seconds)
    if endpoint is None:
        raise ClusterNotOpened(
            name,
            opening.why(opening_seconds),
            f"Try `iris --cluster={cluster} cluster status`, which takes the same way, or give the address of a way "
            "of your own with --controller=URL",
        )
    with endpoint:
        yield endpoint


class _Opening:
    """One attempt to open a tunnel, in a thread: it waits for programs that may never answer."""

    def __init__(self, config_file: Path) -> None:
        self._config_file = config_file
        self._lock = threading.Lock()
        self._given_up = False
        self._endpoint: ControllerEndpoint | None = None
        self._error: BaseException | None = None
        self._said = _LastWarning()
        self._thread = threading.Thread(target=self._run, name="open-cluster", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        from iris.cli.connect import connect_controller

        logger = logging.getLogger("iris")
        logger.addHandler(self._said)
        try:
            endpoint = connect_controller(config_file=self._config_file)
        except BaseException as error:  # A thread has nobody to raise to; `why` tells it.
            self._error = error
            return
        finally:
            logger.removeHandler(self._said)
        with self._lock:
            if not self._given_up:
                self._endpoint = endpoint
                return
        endpoint.close()

    def wait(self, seconds: float) -> "ControllerEndpoint | None":
        self._thread.join(timeout=seconds)
        with self._lock:
            self._given_up = self._endpoint is None
            return self._endpoint

    def why(self, seconds: float) -> str:
        said = f" ({_clause(self._said.text)})" if self._said.text else ""
        if self._error is None:
            return f"no way to it opened within {seconds:g} s{said}"
        return f"{_said(self._error)}{said}"


class _LastWarning(logging.Handler):
    """Keeps what Iris said last: there stands what kubectl or ssh answered."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


def _said(error: Any) -> str:
    # click's exceptions have a message; a bare KeyError or TypeError says more with its name.
    message = getattr(error, "message", None) or str(error)
    if isinstance(error, KeyError | TypeError | AttributeError):
        message = f"{type(error).__name__}: {message}"
    return _clause(message) or type(error).__name__


def _clause(text: str) -> str:
    return brief(text).rstrip(".")
