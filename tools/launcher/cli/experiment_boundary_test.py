"""What an experiment may not do, said in the same words by a process of its own and by the worker."""

import sys

import pytest

from tools.launcher.cli.preflight_action import OUTPUTS
from tools.launcher.cli.preflight_process_testlib import (
    ARGUMENTS,
    folder,
    one_shot,
    outputs,
    start_worker,
    with_code,
)

NETWORK = "A build action has no network. Declare what it needs as a card, or pass it as an option"
PROCESS = "A build action is one process. Write the answer into the experiment, or pass it as an option"
FILE = "A build action writes its own outputs only. Return the terminal step from main()"
INPUT = (
    "A build action reads the files that its target names. Write it into the experiment, a card or an option"
)
CLOCK = "A build action has no clock: its plan would be another one each time. Write the date into the experiment, or pass it as an option"
CHANCE = "A build action draws nothing by chance: its plan would be another one each time. Write the value into the experiment, or draw it by random.Random(SEED)"
VARIABLE = "A build action has none of yours. Write its value into the experiment, or pass it as an option"
MACHINE = "A build action plans the same on every machine. Write the answer into the experiment, or pass it as an option"
STOPWATCH = "A build action has no clock: its plan would be another one each time. Leave the measurement out"
FOLDER = "A build action is another process in another folder each time. A path from the workspace root is found as it is"
PROCESS_NUMBER = (
    "A build action is another process in another folder each time. Write a value into the experiment"
)
TEMPORARY = "A build action writes its own outputs only. Keep in memory what would be in there"
KIND = f"asks what machine and system it is on. {MACHINE}"
DEEDS = {
    "import time; time.time()": f"asks what time it is. {CLOCK}",
    "import time; time.strftime('%Y')": f"asks what time it is. {CLOCK}",
    "import time; time.localtime(None)": f"asks what time it is. {CLOCK}",
    "import time; time.localtime()": f"asks what time it is. {CLOCK}",
    "import datetime; f'{datetime.datetime.now():%Y}'": f"asks what time it is. {CLOCK}",
    "from datetime import date; date.today()": f"asks what time it is. {CLOCK}",
    "import time; time.monotonic()": f"measures time. {STOPWATCH}",
    "from time import perf_counter_ns; perf_counter_ns()": f"measures time. {STOPWATCH}",
    "import time; time.process_time()": f"measures time. {STOPWATCH}",
    "import uuid; uuid.uuid4()": f"draws by chance. {CHANCE}",
    "import random; random.randint(0, 9)": f"draws by chance. {CHANCE}",
    "import random; random.random()": f"draws by chance. {CHANCE}",
    "import random; random.seed()": f"draws by chance. {CHANCE}",
    "import random; random.seed(1); random.seed()": f"draws by chance. {CHANCE}",
    "import random; was = random.getstate(); random.seed(1); random.setstate(was); random.random()": f"draws by chance. {CHANCE}",
    "import random; random.Random()": f"draws by chance. {CHANCE}",
    "import secrets; (lambda: secrets.token_hex(4))()": f"draws by chance. {CHANCE}",
    "import os; os.urandom(4)": f"draws by chance. {CHANCE}",
    "import socket; socket.gethostname()": f"asks for the machine's name. {MACHINE}",
    "import platform; platform.machine()": KIND,
    "import platform; platform.platform(terse=True)": KIND,
    "from platform import system; system()": KIND,
    "import os; os.cpu_count()": f"asks how many processors there are. {MACHINE}",
    "import pathlib; pathlib.Path.home()": f"asks for the user's folder. {MACHINE}",
    "import pathlib; pathlib.Path.cwd()": f"asks in which folder it runs. {FOLDER}",
    "import os; os.getcwd()": f"asks in which folder it runs. {FOLDER}",
    "import os; os.getpid()": f"asks for the number of a process. {PROCESS_NUMBER}",
    "import tempfile; tempfile.gettempdir()": f"asks for a temporary file or folder. {TEMPORARY}",
    "import tempfile; tempfile.mkdtemp()": f"asks for a temporary file or folder. {TEMPORARY}",
    "import tempfile; tempfile.NamedTemporaryFile()": f"asks for a temporary file or folder. {TEMPORARY}",
    "import tempfile; tempfile.TemporaryDirectory()": f"asks for a temporary file or folder. {TEMPORARY}",
    "import dataclasses, time; dataclasses.field(default_factory=time.time)": f"hands on a function that asks what time it is. {CLOCK}",
    "import uuid; map(uuid.uuid4, [1])": f"hands on a function that draws by chance. {CHANCE}",
    "import random; map(random.choice, [[1]])": f"hands on a function that draws by chance. {CHANCE}",
    "import os; list(map(os.environ.get, ['SEED']))": f"hands on a function that reads an environment variable. {VARIABLE}",
    "import os; os.environ.get('SEED', 1)": f"reads an environment variable. {VARIABLE}",
    "import os; (get := os.environ.get); get('SEED')": f"reads an environment variable. {VARIABLE}",
    "import os; os.getenv('SEED')": f"reads an environment variable. {VARIABLE}",
    "import getpass; getpass.getuser()": f"asks for the user's name. {MACHINE}",
    "import socket; socket.create_connection(('example.com', 80))": f"looks up the address of 'example.com'. {NETWORK}",
    "import socket; socket.socket().connect(('192.0.2.1', 80))": f"connects to ('192.0.2.1', 80). {NETWORK}",
    "import socket; socket.socket().bind(('127.0.0.1', 0))": f"binds a socket to ('127.0.0.1', 0). {NETWORK}",
    "import urllib.request; urllib.request.urlopen('http://192.0.2.1/x')": f"looks up the address of '192.0.2.1'. {NETWORK}",
    "import subprocess; subprocess.run(['git', 'rev-parse', 'HEAD'])": f"starts ['git', 'rev-parse', 'HEAD']. {PROCESS}",
    "import os; os.system('date')": f"starts b'date'. {PROCESS}",
    "import os; os.fork()": f"forks. {PROCESS}",
    "import os; os.execv('/bin/true', ['true'])": f"becomes '/bin/true'. {PROCESS}",
    "import os; os.posix_spawn('/bin/true', ['true'], {})": f"starts '/bin/true'. {PROCESS}",
    "open('/etc/passwd')": f"reads '/etc/passwd'. {INPUT}",
    "open(b'/etc/passwd', 'rb')": f"reads b'/etc/passwd'. {INPUT}",
    "import os; os.open('/etc/passwd', os.O_RDONLY)": f"reads '/etc/passwd'. {INPUT}",
    "import pathlib; pathlib.Path('../' * 40 + 'etc/passwd').read_text()": f"reads '{'../' * 40}etc/passwd'. {INPUT}",
    "import os; os.listdir('/etc')": f"lists the folder '/etc'. {INPUT}",
    "open('/tmp/notes', 'w')": f"opens '/tmp/notes' for writing. {FILE}",
    "open('notes', 'ab')": f"opens 'notes' for writing. {FILE}",
    "import os; os.open(b'notes', os.O_CREAT)": f"opens b'notes' for writing. {FILE}",
    "import pathlib; pathlib.Path('notes').mkdir()": f"makes the folder 'notes'. {FILE}",
    "import os; os.remove('experiments')": f"removes 'experiments'. {FILE}",
    "import os; os.replace('experiments', 'x')": f"renames 'experiments'. {FILE}",
    "import os; os.symlink('experiments', 'x')": f"makes a link to 'experiments'. {FILE}",
}
"""Code of an experiment -> what is said of it."""


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    with start_worker(tmp_path_factory.mktemp("worker") / "log") as process:
        yield process


@pytest.mark.parametrize("code", DEEDS)
def test_what_no_build_action_can_do_is_refused_with_place_and_repair(worker, tmp_path, code):
    place = folder(tmp_path, with_code(code))
    expected = (
        "error: //experiments/gsm8k_grpo:gsm8k_grpo: experiments/gsm8k_grpo/experiment.py:54: "
        f"the experiment {DEEDS[code]}\n"
    )
    assert worker.call(*ARGUMENTS, sandboxDir=place) == {"requestId": 1, "exitCode": 1, "output": expected}
    assert outputs(place) == {} and not list(tmp_path.glob("notes"))


def test_a_process_of_its_own_says_the_same(worker, tmp_path):
    attempts = "".join(
        f"try:\n    {code}\nexcept OSError as error:\n    said.append(str(error.__context__ or error))\n"
        for code in DEEDS
    )
    place = folder(tmp_path, with_code(f"said = []\n{attempts}raise ValueError('; '.join(said))"))
    done = one_shot(place)
    assert (done.returncode, done.stdout) == (1, "")
    for sentence in DEEDS.values():
        assert sentence in done.stderr
    assert worker.call(*ARGUMENTS, sandboxDir=place)["output"] == done.stderr


def test_what_a_build_action_may_do_is_done(worker, tmp_path):
    code = (
        "import os, tempfile, random, asyncio, urllib.request, multiprocessing, uuid, logging, threading, sqlite3\n"
        "open(os.devnull, 'w').write('x'); open('third_party/datasets/gsm8k.yaml').read(); os.chdir('/')\n"
        "thread = threading.Thread(target=print, args=('hello',)); thread.start(); thread.join()\n"
        "try: open('/none')\nexcept FileNotFoundError: pass\n"
        "try: open('/none', 'w')\nexcept OSError: pass\n"
        "import datetime, time; logging.warning('time'); datetime.datetime(2026, 1, 1).strftime('%Y')\n"
        "time.gmtime(0); time.sleep(0); random.Random(1).random(); random.getstate(); [].count([])\n"
        "random.setstate(random.Random(3).getstate()); random.random(); random.seed(2); random.choice([1])\n"
        "list(map(random.choice, [[1]])); list(map(random.Random(1).choice, [[1]])); list(map(time.ctime, [0]))\n"
        "time.strftime('%Y', time.gmtime(0)); time.strftime(*('%Y', time.gmtime(0))); datetime.date(2026, 1, 1)\n"
        "import platform; platform.python_version(); id(os); hash('x'); tempfile.SpooledTemporaryFile().close()\n"
        "class Odd:\n    __hash__ = None\n    def __getattr__(self, name): raise RuntimeError(name)\n"
        "    def __call__(self, *_): return self\n    def __eq__(self, other): return True\n"
        "def get(mapping): return mapping\n"
        "Odd()(get(os.environ)); get(Odd())"
    )
    place = folder(tmp_path, with_code(code))
    answer = worker.call(*ARGUMENTS, sandboxDir=place)
    assert answer["exitCode"] == 0 and "hello\n" in answer["output"]
    assert set(outputs(place)) == {f"out.{name}" for name in OUTPUTS}


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
