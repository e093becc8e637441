"""The digests of many experiments: what `affected` compares.

They are planned one after another in one process, in a third of the time that a process for each takes: most of that
is memory which every process copies for itself. No experiment may make a difference to the next, so what they leave
behind in that process is looked at in the end (process_traces.py). If there is anything, or if it ended early, what it
said is not used, and every experiment gets a process of its own.

Exit status: 0, also where experiments are refused, which the manifest says of each; 1 it cannot be told of one whether
it is, and nothing is written.
"""

import contextlib
import gc
import json
import os
import shutil
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from tools.launcher.cli import experiment_boundary
from tools.launcher.cli.card_reader import CardReader
from tools.launcher.cli.declared_inputs import folder_of_inputs
from tools.launcher.cli.first_sentence import first_sentence
from tools.launcher.cli.judge_experiment import judge_experiment
from tools.launcher.cli.preflight_request import (
    DIGESTS_OUT,
    find_sources_here,
    read_ahead,
    request_parser,
    run_experiment,
)
from tools.launcher.cli.process_traces import left_between, traces
from tools.launcher.cli.refusal_text import REFUSALS, refusal_text
from tools.launcher.compare.beside import beside_digest
from tools.launcher.compare.digest_manifest import (
    DigestManifest,
    ExperimentDigests,
    dump_manifest,
    load_manifest,
)
from tools.launcher.worker.child import end_with_parent

_PART = "--part="
_LABEL = "--label="

_COLLECT_AFTER = 100_000
"""Objects after which garbage is collected: about ten experiments."""

_OUR_FAULT = 70
"""Exit status of a process that met an error of ours (EX_SOFTWARE of sysexits.h)."""

Verdict = ExperimentDigests | str
"""Digests, or the first sentence of why there are none."""


class _Asked(NamedTuple):
    """One experiment, its request and the folder that has its inputs."""

    label: str
    arguments: Sequence[str]
    folder: str


def main(arguments: Sequence[str], cards: CardReader, scratch: Path) -> int:
    """Write a digest manifest.

    Args:
        arguments: `--digests_out=FILE`, then for each experiment the arguments of a preflight without outputs,
            `--label` first; or `--part=FILE` for each manifest of which this one is made.
        cards: reads the cards and manifests.
        scratch: a folder for the inputs; does not exist yet.

    Returns:
        The exit status.

    Raises:
        OSError: the inputs cannot be linked, or the manifest cannot be written.
    """
    out, *asked = arguments
    parts = [argument.removeprefix(_PART) for argument in asked if argument.startswith(_PART)]
    if parts:
        manifests = [load_manifest(Path(part).read_bytes(), source=part) for part in parts]
        verdicts = {
            label: it for each in manifests for label, it in (each.experiments | each.refused).items()
        }
    else:
        for _ in read_ahead(asked, cards):
            pass
        try:
            verdicts = _verdicts(list(_each(asked, scratch)), cards)
        except _NotTold as error:
            # Not an entry of the manifest: what failed once may go well the next time, and results are kept.
            sys.stderr.write(f"error: {error}\n")
            return 1
        finally:
            # Here, beside other actions: a worker has one thread to do it for all.
            shutil.rmtree(scratch, ignore_errors=True)
    manifest = DigestManifest(
        schema=1,
        experiments={label: it for label, it in verdicts.items() if isinstance(it, ExperimentDigests)},
        refused={label: it for label, it in verdicts.items() if isinstance(it, str)},
    )
    Path(out.removeprefix(DIGESTS_OUT)).write_bytes(dump_manifest(manifest))
    return 0


def _each(arguments: Iterable[str], scratch: Path) -> Iterator[_Asked]:
    """Part the arguments by experiment, and link each one's inputs."""
    requests: list[list[str]] = []
    for argument in arguments:
        if argument.startswith(_LABEL):
            requests.append([])
        requests[-1].append(argument)
    for number, request in enumerate(requests):
        yield _Asked(
            request[0].removeprefix(_LABEL), request, folder_of_inputs(request, scratch / str(number))
        )


class _NotTold(Exception):
    """Nobody knows of an experiment whether it is refused. The message says what happened, and to which."""


def _verdicts(asked: Sequence[_Asked], cards: CardReader) -> dict[str, Verdict]:
    if not asked:
        return {}
    together = _told_by_a_process(asked, cards)
    if together.ended == 0 and together.verdicts.keys() == {one.label for one in asked}:
        return together.verdicts
    alone: dict[str, Verdict] = {}
    for one in asked:
        told = _told_by_a_process([one], cards)
        if one.label in told.verdicts:
            alone[one.label] = told.verdicts[one.label]
        elif told.ended < 0:
            raise _NotTold(
                f"{one.label}: its process was ended by signal {-told.ended} before it was planned"
            )
        elif told.ended == _OUR_FAULT:
            raise _NotTold(f"{one.label}: preflight itself fails, as told above")
        else:
            alone[one.label] = (
                f"its process ends before it is planned (exit status {told.ended}). Return the terminal step from main(), "
                "or raise an ordinary error"
            )
    return alone


class _Told(NamedTuple):
    """What a process said, and its exit status: 0 if it was in the end as in the beginning. Negative: a signal."""

    verdicts: dict[str, Verdict]
    ended: int


def _told_by_a_process(asked: Sequence[_Asked], cards: CardReader) -> _Told:
    """Plan experiments one after another in a process of their own."""
    sys.stdout.flush()
    sys.stderr.flush()
    gc.collect()
    gc.freeze()
    parent = os.getpid()
    read_from, write_to = os.pipe()
    process = os.fork()
    if process == 0:
        status = _OUR_FAULT
        try:
            end_with_parent(parent)
            os.close(read_from)
            status = _tell(asked, cards, write_to)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    os.close(write_to)
    with os.fdopen(read_from, "rb") as answers:
        said = answers.read()
    _, ended = os.waitpid(process, 0)
    return _Told(_read(said), os.waitstatus_to_exitcode(ended))


def _tell(asked: Sequence[_Asked], cards: CardReader, write_to: int) -> int:
    """Write a line for each experiment; return 0 if they left nothing behind."""
    gc.set_threshold(_COLLECT_AFTER)
    os.chdir(asked[0].folder)
    find_sources_here()
    enter = experiment_boundary.enforce(())
    before, read = traces(), cards.contents()
    modules = set(sys.modules)
    # Not looked up after an experiment has run, which may have put something else there.
    write, encoded = os.write, json.JSONEncoder().encode
    for one in asked:
        os.chdir(one.folder)
        enter()
        # By this name Python knows what it imports from there, whatever links lead to it.
        place = f"{Path.cwd()}{os.sep}"
        verdict = _verdict(one, cards)
        _forget_modules_below(place, modules)
        said = verdict if isinstance(verdict, str) else verdict.model_dump()
        write(write_to, encoded([one.label, said]).encode() + b"\n")
    now = cards.contents()
    return int(
        # One that is gone had to make room for another.
        any(now.get(key, said) != said for key, said in read.items())
        # Who imports a package finds the parts of it that another has imported.
        or any("." in name for name in sys.modules.keys() - modules)
        or bool(left_between(before, traces()))
    )


def _verdict(one: _Asked, cards: CardReader) -> Verdict:
    flags = request_parser().parse_args(one.arguments)
    try:
        graph = run_experiment(flags, cards)
        judged = judge_experiment(
            graph.terminals, graph.inputs, label=one.label, stage=flags.stage, ledger=graph.ledger
        )
        return ExperimentDigests(
            version=judged.run.version,
            recipe=judged.digests.recipe,
            launch=judged.digests.launch,
            graph=beside_digest(judged.graph_document),
        )
    except REFUSALS as refusal:
        return first_sentence(refusal_text(refusal, one.label), one.label)


def _forget_modules_below(folder: str, known: Set[str]) -> None:
    """Forget the modules that were imported from an experiment's inputs: the next may have others of their names."""
    # All are found before one is gone: where the parts of a package are, Python asks the package that it is in.
    found = [name for name in sys.modules.keys() - known if _is_below(sys.modules[name], folder)]
    for name in found:
        del sys.modules[name]


def _is_below(module: object, folder: str) -> bool:
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return any(isinstance(place, str) and place.startswith(folder) for place in places)


def _read(said: bytes) -> dict[str, Verdict]:
    """What a process wrote, as far as it is what it should be: an experiment may have written there."""
    verdicts: dict[str, Verdict] = {}
    with contextlib.suppress(ValueError, TypeError):
        for line in said.splitlines():
            label, verdict = json.loads(line)
            verdicts[label] = verdict if isinstance(verdict, str) else ExperimentDigests(**verdict)
    return verdicts
