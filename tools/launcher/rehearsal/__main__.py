"""Command line of the rehearsal: the runtime launcher's, and what stands in for its surroundings.

    python -m tools.launcher.rehearsal iris launch --config FILE --object-root=file:///... [--credential=NAME ...]
    python -m tools.launcher.rehearsal task --object-root=file:///... --document=SHA256   (as a task of Iris)
    python -m tools.launcher.rehearsal import --kind=hf_model|dataset ...   (a stand-in artifact)
    python -m tools.launcher.rehearsal evaluate ...                         (an `evaluate` step)

Standard output carries the one JSON answer, everything else goes to standard error.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tools.launcher.documents.canonical import canonical_json
from tools.launcher.iris.task_bootstrap import CODE_ARCHIVE, leave
from tools.launcher.rehearsal.problems import RehearsalProblem
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import StoreError
from tools.launcher.store.open_store import path_of_file_url

if TYPE_CHECKING:
    from tools.launcher.rehearsal.launch import Gateway

# Each command imports what it needs when it runs: a gang starts as many processes as it has tasks,
# and NumPy or the scheduler's client cost each of them more than its work.


def main(argv: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        object_root = ObjectRoot(path_of_file_url(arguments.object_root, what="object root"))
        match arguments.command:
            case "iris":
                return _launch(arguments, object_root)
            case "task":
                from tools.launcher.rehearsal.task import run_task

                return run_task(object_root, os.environ, arguments.document, tuple(arguments.credential))
            case "import":
                return _import(arguments, object_root)
            case _:
                return _evaluate(arguments, object_root)
    except (RehearsalProblem, StoreError, OSError) as error:
        print(f"rehearsal: {error}", file=sys.stderr, flush=True)
    except Exception as error:  # The boundary of the process: whoever called gets a sentence.
        print(f"rehearsal: unexpected {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    return 1


def _launch(arguments: argparse.Namespace, object_root: ObjectRoot) -> int:
    from tools.launcher.rehearsal.launch import launch

    config = Path(arguments.config)
    archive = Path(os.environ.get("IRIS_WORKDIR", "")) / CODE_ARCHIVE
    if not archive.is_file():
        raise RehearsalProblem(
            "there is no slipway.zip in IRIS_WORKDIR. This command runs inside the coordinator's Iris job"
        )
    answer = launch(
        config.read_bytes(),
        source=config.name,
        object_root_url=arguments.object_root,
        object_root=object_root,
        code_archive=archive.read_bytes(),
        gateway=_iris,
        environ=os.environ,
        credentials=tuple(arguments.credential),
        say=lambda text: print(f"[rehearsal] {text}", file=sys.stderr, flush=True),
    )
    print(canonical_json(answer.model_dump()).decode(), flush=True)
    return 1 if answer.state == "failed" else 0


def _iris() -> "Gateway":
    # Imported here: Iris takes seconds to import, and only a submission needs it.
    from tools.launcher.iris.gateway import inside_job

    return inside_job()


def _import(arguments: argparse.Namespace, object_root: ObjectRoot) -> int:
    from tools.launcher.rehearsal.standin import import_dataset, import_model

    folder = object_root.path(arguments.output)
    if arguments.kind == "hf_model":
        record = import_model(
            folder,
            name=arguments.name,
            version=arguments.version,
            fingerprint=arguments.fingerprint,
            relative_path=(arguments.relative_path or [""])[0],
            model_name=arguments.card,
            tokenizer_uri=arguments.tokenizer_uri,
            tokenizer_revision=arguments.tokenizer_revision,
        )
    else:
        record = import_dataset(
            folder,
            name=arguments.name,
            version=arguments.version,
            fingerprint=arguments.fingerprint,
            relative_paths=arguments.relative_path or [],
            env_class=arguments.env_class,
        )
    print(f"[rehearsal] stand-in {record.identity} at {arguments.output}", file=sys.stderr, flush=True)
    return 0


def _evaluate(arguments: argparse.Namespace, object_root: ObjectRoot) -> int:
    from tools.launcher.rehearsal.evaluation import run_evaluation

    reward = run_evaluation(
        object_root,
        name=arguments.name,
        version=arguments.version,
        fingerprint=arguments.fingerprint,
        output_uri=arguments.output,
        export_uri=arguments.export,
        env_class=arguments.env_class,
        episodes=arguments.episodes,
        seed=arguments.seed,
    )
    print(f"[rehearsal] {arguments.episodes} episodes, mean reward {reward:.3f}", file=sys.stderr, flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    # Not absl's: its import costs each task a tenth of a second, and only our own programs write these arguments.
    root = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    root.add_argument(
        "--object-root", required=True, help="file:///... of the folder which stands for all buckets"
    )
    step = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for flag in ("--name", "--version", "--fingerprint", "--output"):
        step.add_argument(flag, required=True)

    parser = argparse.ArgumentParser(prog="rehearsal", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    iris = commands.add_parser("iris", allow_abbrev=False).add_subparsers(dest="iris_command", required=True)
    credentials = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    credentials.add_argument(
        "--credential",
        action="append",
        default=[],
        help="name of a credential that Iris delivers; repeatable",
    )
    launch = iris.add_parser("launch", parents=[root, credentials], allow_abbrev=False)
    launch.add_argument("--config", required=True)
    task = commands.add_parser("task", parents=[root, credentials], allow_abbrev=False)
    task.add_argument("--document", required=True, help="SHA-256 of the launch document")

    imports = commands.add_parser("import", parents=[root, step], allow_abbrev=False)
    imports.add_argument("--kind", choices=("hf_model", "dataset"), required=True)
    imports.add_argument("--card", default="", help="name of the model or dataset card")
    imports.add_argument("--relative-path", action="append", help="repeatable for datasets")
    imports.add_argument("--tokenizer-uri", default="")
    imports.add_argument("--tokenizer-revision", default="")
    imports.add_argument("--env-class", default="gsm8k")

    evaluate = commands.add_parser("evaluate", parents=[root, step], allow_abbrev=False)
    evaluate.add_argument("--export", required=True, help="URI of the exported model")
    evaluate.add_argument("--env-class", required=True)
    evaluate.add_argument("--episodes", type=int, required=True)
    evaluate.add_argument("--seed", type=int, required=True)
    return parser


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
