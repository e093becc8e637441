"""Ports, directories and timeouts of the processes that find each other."""

import re
from collections.abc import Iterator

from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.execution.reading import integers, known_values
from tools.launcher.preflight.checks.execution.variables import as_text, set_variables
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import counted, listed, set_to, shown

_PORT = "ray.port"
_BACKEND = "ray.spill_backend"
_SPILL = "ray.spill_dir"
_RENDEZVOUS = "ray.rendezvous_dir"
_LAST_PORT = 65535
_SPILL_OF_MARIN = "/tmp/skyrl-ray-spill"
_TIMEOUTS = {"ray.rendezvous_timeout": 1800, "ray.cluster_join_timeout": 1800}
"""Seconds that marin-core 0.2.210 writes."""
_LIVENESS = "ray.driver_liveness_timeout"
_INTERFACE = "NCCL_SOCKET_IFNAME"


@check(
    "EXE-09",
    "Ray can start and spill",
    area="execution",
    rule="1 <= ray.port <= 65535; timeouts > 0, driver liveness >= 0; spill backend local (absolute path) or r2 "
    "(rendezvous on s3://)",
    prevents="The launcher refuses it after the coordinator started; a port that does not exist fails on the nodes.",
    inputs=("spec", "runtime"),
    source="catalogue EXE-09 (#108), cases d14 to d16, n181; the launcher, late",
)
def exe_09(subject: PreflightSubject) -> Iterator[Finding]:
    for path, value in integers(subject, _PORT, *_TIMEOUTS, _LIVENESS):
        if path == _PORT:
            yield from _port_problem(path, value, 6379)
        elif value < (0 if path == _LIVENESS else 1):
            least = "0 or more" if path == _LIVENESS else "positive"
            yield Finding(
                path=path,
                message=f"{path}={shown(value)} seconds must be {least}",
                repair=set_to(path, _TIMEOUTS.get(path, 9000)),
            )
    backends = known_values(subject, _BACKEND)
    backend = subject.get(_BACKEND)
    if backend is not None and backend not in backends:
        yield Finding(
            path=_BACKEND,
            message=f"{_BACKEND} {shown(backend)} is unknown. Known: {listed(backends)}",
            repair=set_to(_BACKEND, *backends),
        )
    elif backend in (None, "local"):
        directory = subject.text(_SPILL)
        if not directory.startswith("/") or "://" in directory:
            yield Finding(
                path=_SPILL,
                message=f"{_SPILL} {shown(directory)} must be an absolute path on the node: the spill backend is local",
                repair=set_to(_SPILL, _SPILL_OF_MARIN),
            )
    elif backend == "r2":
        rendezvous = subject.text(_RENDEZVOUS)
        if not rendezvous.startswith("s3://"):
            yield Finding(
                path=_RENDEZVOUS,
                message=f"{_RENDEZVOUS} {shown(rendezvous)} must begin with s3://: the spill backend is r2",
                repair=set_to(_BACKEND, "local"),
            )


def _port_problem(path: str, port: int, usual: int) -> Iterator[Finding]:
    if not 1 <= port <= _LAST_PORT:
        yield Finding(
            path=path,
            message=f"{path}={shown(port)} is no port; ports are 1 to {_LAST_PORT}",
            repair=set_to(path, usual),
        )


@check(
    "EXE-29",
    "the engines' port exists",
    area="execution",
    rule="1 <= ingress.vllm_http_port <= 65535",
    prevents="The engines' HTTP server cannot start.",
    inputs=("spec",),
    source="contract launch-document.md §4.5; nobody checks it",
)
def exe_29(subject: PreflightSubject) -> Iterator[Finding]:
    for path, port in integers(subject, "ingress.vllm_http_port"):
        yield from _port_problem(path, port, 8000)


@check(
    "EXE-24",
    "the nodes of a gang find the same network",
    area="execution",
    rule="more than one node: NCCL_SOCKET_IFNAME excludes what the cluster's default excludes",
    prevents="The gang forms on the wrong network and waits.",
    inputs=("spec", "cluster"),
    source="catalogue EXE-24 (new), contract runtime-facts.md §12; the launcher, for one cluster",
)
def exe_24(subject: PreflightSubject) -> Iterator[Finding]:
    if Geometry.of(subject).num_nodes <= 1:
        return
    wanted = subject.cluster_fact("nccl_socket_ifname")
    if wanted is None:
        return
    for variable in set_variables(subject):
        if variable.name != _INTERFACE or _excludes(as_text(variable.value), wanted):
            continue
        name = subject.cluster.name if subject.cluster is not None else ""
        yield Finding(
            path=variable.paths[0],
            message=f"{_INTERFACE}={shown(variable.value)} replaces the {shown(wanted)} that {name} sets for its tasks; "
            f"{counted(Geometry.of(subject).num_nodes, 'node')} must find one network",
            repair=variable.deletion,
            severity="warning",
        )


def _excludes(value: str, wanted: str) -> bool:
    """Whether `value` keeps NCCL from every interface that `wanted` keeps it from."""
    if not value.startswith("^") or not wanted.startswith("^"):
        return value == wanted
    names = [set(re.split(r"\s*,\s*", text[1:].strip())) for text in (value, wanted)]
    return names[0] >= names[1]


CHECKS = (exe_09, exe_24, exe_29)
