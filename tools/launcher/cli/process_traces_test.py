"""What is seen of what code left behind. Each case runs in a process of its own, which it may spoil."""

import subprocess
import sys

import pytest

# The imports of the code are made before: an import leaves what it imports, and that is told of ours alone.
PROGRAM = """
import atexit, decimal, gc, json, locale, logging, os, random, signal, sys, threading, warnings
from tools.launcher.catalog import cards
from tools.launcher.cli.process_traces import left_between, traces
before = traces()
exec({code!r})
seen = left_between(before, traces())
os.write(1, repr([name for name in seen if name != "__main__.seen"]).encode())
os._exit(0)
"""


def left_by(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(code=code)],
        env={"PYTHONPATH": ":".join(sys.path), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("json.dumps = None", "json.dumps"),
        ("import builtins; builtins.open = None", "builtins.open"),
        ("cards.LEAK = 1", "tools.launcher.catalog.cards.LEAK"),
        ("cards.ModelCard.leak = 1", "tools.launcher.catalog.cards.ModelCard.leak"),
        ("cards.ModelCard.model_config = {}", "tools.launcher.catalog.cards.ModelCard.model_config"),
        ("del json.dumps", "json.dumps"),
        ("sys.modules['json'] = sys", "json"),
        ("del sys.modules['json']", "json"),
        ("sys.excepthook = None", "sys.excepthook"),
        ("sys.path.append('/nowhere')", "sys.path"),
        ("sys.argv.append('x')", "sys.argv"),
        ("sys.meta_path.append(None)", "sys.meta_path"),
        ("sys.path_hooks.append(None)", "sys.path_hooks"),
        ("os.environ['LEAK'] = '1'", "os.environ"),
        ("os.umask(0o777)", "umask"),
        ("random.seed(1)", "random"),
        ("decimal.getcontext().prec = 2", "decimal"),
        ("locale.setlocale(locale.LC_ALL, 'C.UTF-8')", "locale"),
        ("warnings.simplefilter('error')", "warnings"),
        ("signal.signal(15, signal.SIG_IGN)", "signals"),
        ("signal.setitimer(0, 500)", "timer"),
        ("threading.Thread(target=threading.Event().wait).start()", "threads"),
        ("sys.setprofile(lambda *_: None)", "tracing"),
        ("sys.setrecursionlimit(400)", "limits"),
        ("sys.set_int_max_str_digits(700)", "limits"),
        ("gc.disable()", "gc"),
        ("logging.root.setLevel(1)", "logging"),
    ],
)
def test_it_is_seen(code, name):
    assert f"'{name}'" in left_by(code)


@pytest.mark.parametrize(
    "code",
    [
        "pass",
        "import colorsys",
        "import tools.launcher.documents.canonical",
        "random.Random(7).random()",
        "cards.ModelCard.model_json_schema()",
        "json.dumps({'a': 1})",
    ],
)
def test_what_makes_no_difference_is_not(code):
    assert left_by(code) == "[]"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
