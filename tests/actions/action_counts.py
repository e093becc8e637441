#!/usr/bin/env python3
"""Counts what Bazel runs after an edit: as many preflights as have to be, and nothing else.

    tests/actions/action_counts.py [--keep]

Works on a copy of this checkout with some generated experiments and an output base of its own. What ran is
read from Bazel's execution log and build events, never from clocks. Run from anywhere inside a checkout; needs
half a gigabyte of disk for the time it runs. Ends with `N passed, N failed`, one check each.
"""

import argparse
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.bazel_bench import copy_working_tree  # noqa: E402
from tests.bench.generated_experiments import FOLDER, write_experiments  # noqa: E402

ALL = "//experiments/..."
GENERATED = 12
PREFLIGHTS = f'kind("rl_preflight rule", {ALL})'
TOGETHER = "//tools/launcher/asked:digests"
ONE = f"{FOLDER}/g0003"
ONE_LABEL = f"//{ONE}:g0003"
GOLDEN = "experiments/cat_count/golden/launch.yaml"
MANIFEST = "third_party/marinskyrl/81ae0ef7.yaml"
REQUIREMENTS = (
    "requires-worker-protocol",
    "supports-multiplex-sandboxing",
    "supports-multiplex-workers",
    "supports-worker-cancellation",
    "supports-workers",
)

Check = Callable[[], Iterator[tuple[str, Any, Any]]]
"""Yields what is compared, what is there and what should be."""


@dataclasses.dataclass(frozen=True)
class Ran:
    """What one Bazel command ran.

    Attributes:
        status: exit status of Bazel.
        said: its stderr.
        spawns: (mnemonic, label) of each process, or request to a worker, that ran: no cache hits.
        hits: the same of those that a disk cache answered.
        actions: mnemonic -> actions that were not up to date, also those inside the server.
    """

    status: int
    said: str
    spawns: list[tuple[str, str]]
    hits: list[tuple[str, str]]
    actions: dict[str, int]

    @property
    def preflights(self) -> list[str]:
        return sorted(label for mnemonic, label in self.spawns if mnemonic == "RlPreflight")

    @property
    def mnemonics(self) -> dict[str, int]:
        return dict(Counter(mnemonic for mnemonic, _ in self.spawns))


class Checkout:
    """A copy of the checkout, with an output base and a disk cache."""

    def __init__(self, folder: Path, base: Path, cache: Path) -> None:
        self.folder = folder
        self._base, self._cache = base, cache

    def run(self, command: str, *arguments: str) -> Ran:
        """Run `build` or `test` and return what ran."""
        with tempfile.TemporaryDirectory() as scratch:
            events, log = Path(scratch) / "events.json", Path(scratch) / "log.json"
            done = self.bazel(
                command,
                f"--disk_cache={self._cache}",
                f"--build_event_json_file={events}",
                f"--execution_log_json_file={log}",
                *arguments,
            )
            spawns = list(_json_values(log.read_text(encoding="utf-8"))) if log.exists() else []
            actions = _actions(events)
        return Ran(
            status=done.returncode,
            said=done.stderr,
            spawns=[_name(spawn) for spawn in spawns if not spawn.get("cacheHit")],
            hits=[_name(spawn) for spawn in spawns if spawn.get("cacheHit")],
            actions=actions,
        )

    def bazel(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        call = ["tools/bazel", f"--output_base={self._base}", command, *arguments]
        return subprocess.run(call, cwd=self.folder, capture_output=True, text=True, check=False)

    def append(self, path: str, text: str) -> None:
        """Add text at the end of a file."""
        file = self.folder / path
        file.write_text(file.read_text(encoding="utf-8") + text, encoding="utf-8")

    def replace(self, path: str, old: str, new: str) -> None:
        """Put `new` where `old` stands, once."""
        file = self.folder / path
        text = file.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise SystemExit(f"error: {path} has {text.count(old)} of {old!r}, not one; correct this program")
        file.write_text(text.replace(old, new), encoding="utf-8")

    def experiments(self) -> dict[str, str]:
        """Label -> attributes as its BUILD file has them, of every experiment; a sweep's for its points."""
        found = {}
        for label in self.bazel("query", PREFLIGHTS).stdout.splitlines():
            package, _, target = label.removeprefix("//").partition(":")
            text = (self.folder / package / "BUILD.bazel").read_text(encoding="utf-8")
            declared = re.findall(
                r'^rl_(?:experiment|sweep)\(\n    name = "(\w+)",\n(.*?)^\)$', text, re.M | re.S
            )
            found[label] = next(
                attributes
                for name, attributes in sorted(declared, reverse=True)
                if target == name or target.startswith(f"{name}_")
            )
        return found

    def users(self, card: str) -> list[str]:
        """Labels of the experiments that name a card."""
        return sorted(label for label, text in self.experiments().items() if f'"{card}"' in text)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", action="store_true", help="keep the folders, to look at a difference")
    keep = parser.parse_args().keep
    # Beside Bazel's own files where these are in /tmp: a test's sandbox has nothing of /tmp but the folder in
    # which output base and install base are.
    user_root = os.environ.get("SLIPWAY_OUTPUT_USER_ROOT") or None
    if user_root is not None:
        Path(user_root).mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="slipway-actions-", dir=user_root))
    checkout = Checkout(folder / "checkout", folder / "base", folder / "cache")
    passed = failed = 0
    try:
        copy_working_tree(ROOT, checkout.folder)
        write_experiments(checkout.folder, range(GENERATED))
        for check in checks_of(checkout, folder / "another" / "checkout"):
            different = [
                f"    {what}: {found!r}, not {wanted!r}" for what, found, wanted in check() if found != wanted
            ]
            title = check.__name__.replace("_", " ").strip()
            print("\n".join([f"{'DIFFERENT' if different else 'ok'}: {title}", *different]), flush=True)
            passed, failed = (passed, failed + 1) if different else (passed + 1, failed)
    finally:
        checkout.bazel("shutdown")
        if keep:
            print(f"kept: {folder}")
        else:
            # Bazel makes its outputs read-only.
            subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


def checks_of(checkout: Checkout, elsewhere: Path) -> list[Check]:
    """Return the checks in the order in which they must run: each begins where the one before ended."""
    every = sorted(checkout.experiments())
    goldens = [label for label, text in checkout.experiments().items() if "golden = " in text]

    def a_first_build_runs_the_preflights_and_nothing_else() -> Iterator[tuple[str, Any, Any]]:
        ran = checkout.run("build", ALL)
        yield "exit status", (ran.status, ran.said if ran.status else ""), (0, "")
        yield "preflights", ran.preflights, every
        # The table of a sweep is made from the plans of its points.
        yield "processes", set(ran.mnemonics), {"PythonArchive", "RlPreflight", "RlSweep"}
        made = Path(checkout.bazel("info", "bazel-bin").stdout.strip()) / "experiments"
        helpers = [
            path.name
            for path in made.rglob("*")
            if re.search(r"\.(launch|pin|plan|rehearse|report|\w+_test)$", path.name)
        ]
        yield "verbs and tests", helpers, []

    def a_second_build_runs_nothing() -> Iterator[tuple[str, Any, Any]]:
        ran = checkout.run("build", ALL)
        yield "actions", (ran.status, ran.actions, ran.spawns), (0, {}, [])

    def the_digests_of_all_are_few_actions_and_no_preflight() -> Iterator[tuple[str, Any, Any]]:
        asked = checkout.folder.parent / "asked.txt"
        asked.write_text("".join(f"{label}\n" for label in every), encoding="utf-8")
        asking = (TOGETHER, f"--repo_env=SLIPWAY_ASKED_EXPERIMENTS={asked}")
        ran = checkout.run("build", *asking)
        shares = 1
        while len(every) > 32 * shares:
            shares *= 2
        yield "exit status", (ran.status, ran.said if ran.status else ""), (0, "")
        yield "processes", ran.mnemonics, {"RlDigests": shares + 1}
        made = Path(checkout.bazel("info", "bazel-bin").stdout.strip())
        manifest = json.loads((made / "tools/launcher/asked/digests.json").read_text(encoding="utf-8"))
        told = {
            label: f"recipe sha256:{it['recipe']}\nlaunch sha256:{it['launch']}\n"
            for label, it in manifest["experiments"].items()
        }
        preflights = {label: made / f"{label[2:].replace(':', '/')}.digest" for label in every}
        written = {label: file.read_text(encoding="utf-8") for label, file in preflights.items()}
        yield "digests", told, written
        again = checkout.run("build", *asking)
        yield "again", (again.status, again.spawns), (0, [])
        unasked = checkout.run("build", ALL)
        yield "in a build of all", (unasked.status, unasked.spawns), (0, [])
        checkout.append(f"{ONE}/experiment.py", "# Another comment.\n")
        edited = checkout.run("build", *asking)
        yield "after an edit", (edited.status, edited.mnemonics), (0, {"RlDigests": 1})
        checkout.replace(f"{ONE}/experiment.py", "# Another comment.\n", "")

    def the_action_says_how_workers_may_run_it() -> Iterator[tuple[str, Any, Any]]:
        told = checkout.bazel("aquery", "--output=text", f"mnemonic(RlPreflight, {ONE_LABEL})").stdout
        information = re.findall(r"ExecutionInfo: \{(.*)\}", told)
        names = [re.findall(r"([\w-]+):", line) for line in information]
        yield "execution requirements", [sorted(name) for name in names], [list(REQUIREMENTS)]

    def tests_of_experiments_are_one_shell_script_each() -> Iterator[tuple[str, Any, Any]]:
        ran = checkout.run("test", ALL)
        preflights = [f"{label}.preflight_test" for label in every]
        compared = [f"{label}.golden_test" for label in goldens]
        yield "exit status", (ran.status, ran.said if ran.status else ""), (0, "")
        yield "kinds of processes", set(ran.mnemonics), {"TestRunner"}
        # Of a golden's test, Bazel itself writes the XML, in a second process.
        labels = [label for _, label in ran.spawns]
        yield "processes", sorted(labels), sorted([*preflights, *compared, *compared])
        if ran.status:
            return  # nothing is there to be read
        made = Path(checkout.bazel("info", "bazel-bin").stdout.strip())
        scripts = [
            (made / test[2:].replace(":", "/")).read_text(encoding="utf-8") for test in preflights + compared
        ]
        yield "first lines", {script.splitlines()[0] for script in scripts}, {"#!/bin/sh"}
        logs = Path(checkout.bazel("info", "bazel-testlogs").stdout.strip())
        written = ElementTree.parse(logs / ONE / "g0003.preflight_test/test.xml").getroot()
        cases = [case.get("name") for case in written.iter("testcase")]
        yield "cases", cases, [f"{ONE}/g0003.preflight_test"]

    def tests_without_a_change_are_not_run() -> Iterator[tuple[str, Any, Any]]:
        ran = checkout.run("test", ALL)
        yield "processes", (ran.status, ran.spawns), (0, [])

    def a_comment_in_experiment_py_runs_one_preflight_and_no_test() -> Iterator[tuple[str, Any, Any]]:
        checkout.append(f"{ONE}/experiment.py", "# A comment.\n")
        ran = checkout.run("test", ALL)
        yield "processes", (ran.status, ran.spawns), (0, [("RlPreflight", ONE_LABEL)])

    def an_option_runs_one_preflight_and_its_test() -> Iterator[tuple[str, Any, Any]]:
        checkout.replace(f"{ONE}/BUILD.bazel", '"evaluate_first": True', '"evaluate_first": False')
        ran = checkout.run("test", ALL)
        wanted = [("RlPreflight", ONE_LABEL), ("TestRunner", f"{ONE_LABEL}.preflight_test")]
        yield "processes", (ran.status, sorted(ran.spawns)), (0, wanted)

    def a_version_ledger_runs_the_preflights_of_its_package() -> Iterator[tuple[str, Any, Any]]:
        checkout.append("experiments/cat_count/versions.lock.yaml", "# A comment.\n")
        ran = checkout.run("build", ALL)
        yield (
            "processes",
            (ran.status, ran.spawns),
            (0, [("RlPreflight", "//experiments/cat_count:cat_count")]),
        )

    def documents_and_goldens_run_no_preflight() -> Iterator[tuple[str, Any, Any]]:
        checkout.append("experiments/cat_count/README.md", "\nMore.\n")
        checkout.append(GOLDEN, "# A comment.\n")
        ran = checkout.run("build", ALL)
        yield "actions", (ran.status, ran.actions, ran.spawns), (0, {}, [])

    def a_golden_that_differs_is_shown_with_the_way_out() -> Iterator[tuple[str, Any, Any]]:
        ran = checkout.run("test", ALL)
        test = "//experiments/cat_count:cat_count.golden_test"
        yield "tests", (ran.status, {label for _, label in ran.spawns}), (3, {test})
        logs = Path(checkout.bazel("info", "bazel-testlogs").stdout.strip())
        log = (logs / "experiments/cat_count/cat_count.golden_test/test.log").read_text(encoding="utf-8")
        sentence = (
            "The rendered document of //experiments/cat_count:cat_count is not that of the golden. "
            "If the change is wanted: tools/bazel run //tests/goldens:update\n"
        )
        yield "difference", "\n-# A comment.\n" in log, True
        yield "last line", log[-len(sentence) :], sentence
        checkout.replace(GOLDEN, "# A comment.\n", "")

    def a_golden_that_is_missing_is_named() -> Iterator[tuple[str, Any, Any]]:
        build_file = "experiments/cat_count/BUILD.bazel"
        checkout.replace(build_file, '"golden/launch.yaml"', '"golden/none.yaml"')
        ran = checkout.run("build", "//experiments/cat_count")
        sentence = (
            "rl_experiment //experiments/cat_count:cat_count: the golden 'golden/none.yaml' does not exist. "
            "Create it, empty, add the target to tests/goldens/BUILD.bazel, and run: "
            "tools/bazel run //tests/goldens:update"
        )
        yield "exit status and sentence", (ran.status, sentence in ran.said), (1, True)
        checkout.replace(build_file, '"golden/none.yaml"', '"golden/launch.yaml"')

    def a_card_runs_the_preflights_of_its_users() -> Iterator[tuple[str, Any, Any]]:
        for card in ("models:qwen3_8b", "datasets:cat_count", "clusters:cw_us_west_04a"):
            kind, _, name = card.partition(":")
            users = checkout.users(f"//third_party/{card}")
            yield f"users of {card}, some and not all", 0 < len(users) < len(every), True
            checkout.append(f"third_party/{kind}/{name}.yaml", "# A comment.\n")
            ran = checkout.run("build", ALL)
            yield (
                f"processes for {card}",
                (ran.status, sorted(ran.spawns)),
                (0, [("RlPreflight", user) for user in users]),
            )

    def a_card_that_nothing_names_runs_nothing() -> Iterator[tuple[str, Any, Any]]:
        yield "users", checkout.users("//third_party/datasets:unused"), []
        card = checkout.folder / "third_party/datasets/cat_count.yaml"
        (card.parent / "unused.yaml").write_text(card.read_text(encoding="utf-8"), encoding="utf-8")
        checkout.append(
            "third_party/datasets/BUILD.bazel",
            '\ndataset_card(\n    name = "unused",\n    src = "unused.yaml",\n)\n',
        )
        ran = checkout.run("build", ALL)
        yield "processes", (ran.status, ran.spawns), (0, [])

    def a_repin_runs_every_preflight() -> Iterator[tuple[str, Any, Any]]:
        checkout.append(MANIFEST, "# A comment.\n")
        ran = checkout.run("build", ALL)
        yield "preflights", (ran.status, ran.preflights), (0, every)
        yield "processes", set(ran.mnemonics), {"RlPreflight"}

    def a_second_checkout_takes_all_from_the_disk_cache() -> Iterator[tuple[str, Any, Any]]:
        # Removes outputs and action cache. The wheels stay, and so the second need not fetch them.
        checkout.bazel("clean")
        checkout.bazel("shutdown")
        shutil.copytree(checkout.folder, elsewhere, symlinks=True, ignore=shutil.ignore_patterns("bazel-*"))
        checkout.folder = elsewhere
        ran = checkout.run("build", ALL)
        yield "executed", (ran.status, ran.spawns), (0, [])
        preflights = [hit for hit in sorted(ran.hits) if hit[0] == "RlPreflight"]
        yield "hits", preflights, [("RlPreflight", label) for label in every]

    return [
        a_first_build_runs_the_preflights_and_nothing_else,
        a_second_build_runs_nothing,
        the_digests_of_all_are_few_actions_and_no_preflight,
        the_action_says_how_workers_may_run_it,
        tests_of_experiments_are_one_shell_script_each,
        tests_without_a_change_are_not_run,
        a_comment_in_experiment_py_runs_one_preflight_and_no_test,
        an_option_runs_one_preflight_and_its_test,
        a_version_ledger_runs_the_preflights_of_its_package,
        documents_and_goldens_run_no_preflight,
        a_golden_that_differs_is_shown_with_the_way_out,
        a_golden_that_is_missing_is_named,
        a_card_runs_the_preflights_of_its_users,
        a_card_that_nothing_names_runs_nothing,
        a_repin_runs_every_preflight,
        a_second_checkout_takes_all_from_the_disk_cache,
    ]


def _name(spawn: dict[str, Any]) -> tuple[str, str]:
    return str(spawn["mnemonic"]), str(spawn["targetLabel"])


def _json_values(text: str) -> Iterator[Any]:
    """The values of a file of JSON values with nothing but blanks between them."""
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        value, at = decoder.raw_decode(text, len(text) - len(text[at:].lstrip()))
        yield value


def _actions(events: Path) -> dict[str, int]:
    """Mnemonic -> actions that ran, of the build's metrics; {} of a build that ended before it had any."""
    for line in events.read_text(encoding="utf-8").splitlines() if events.exists() else ():
        summary = json.loads(line).get("buildMetrics", {}).get("actionSummary", {})
        if summary:
            return {
                data["mnemonic"]: int(data["actionsExecuted"])
                for data in summary.get("actionData", [])
                # Runs in every build, inside the server.
                if data["mnemonic"] != "BazelWorkspaceStatusAction"
            }
    return {}


if __name__ == "__main__":
    sys.exit(main())
