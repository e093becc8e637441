"""A checkout with fakes around it, to run tools/bazel in."""

import os
import shutil
import subprocess
import textwrap
from dataclasses import dataclass
from pathlib import Path

# What the scripts call. A folder of links to these is the whole PATH of a test,
# so that no Bazel or Python of the machine is seen.
TOOLS = """
    awk bash cat chmod cp cut df dirname env find flock grep id ln ls mkdir mktemp mv nproc printf readlink
    realpath rm sed sh sha256sum sleep sort tar timeout touch tr uname xargs
""".split()  # noqa: SIM905

FAKE_DEBIAN = """\
source "$HERE/debian_real.sh"
install_debian() {
  echo "$$" >>"$INSTALL_LOG"
  # in small steps, between which bash answers signals
  for ((step = 0; step < 10 * ${INSTALL_SECONDS:-0}; step++)); do sleep 0.1; done
  mkdir -p "$1/root/usr/bin" "$1/root/usr/share/bazel/rules/python"
  cat >"$1/root/usr/bin/bazel" <<BAZEL
#!/bin/sh
for argument; do [ "\\$argument" != --version ] || { echo "bazel ${INSTALL_VERSION:-7.7.1}"; exit; }; done
echo "pid=\\$\\$ args=\\$*"
BAZEL
  chmod 755 "$1/root/usr/bin/bazel"
  printf '%s\\n' "${INSTALL_VERSION:-7.7.1}" >"$1/label"
}
"""

# Answers what python.sh and `-m venv` ask of a Python 3.12.
FAKE_PYTHON = """\
#!/bin/sh
case $1 in
-c) echo "$0" ;;
-m) mkdir -p "$4/bin" && ln -s "$0" "$4/bin/python3.12" ;;
esac
"""


@dataclass(frozen=True)
class Checkout:
    """A copy of the wrapper and its scripts in a scratch folder."""

    root: Path
    path: Path  # the folder that is PATH
    prefix: Path
    home: Path
    log: Path  # one line for each installation that was begun

    @property
    def wrapper(self) -> Path:
        return self.root / "tools" / "bazel"

    def environment(self, **changes: str) -> dict[str, str]:
        return {
            "PATH": str(self.path),
            "HOME": str(self.home),
            "SLIPWAY_BAZEL_PREFIX": str(self.prefix),
            "SLIPWAY_PYTHON": str(self.home / "python3.12"),
            "INSTALL_LOG": str(self.log),
            **changes,
        }

    def run(self, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        """Runs the wrapper to its end; `changes` go into its environment."""
        return subprocess.run(
            [self.wrapper, *arguments],
            env=self.environment(**changes),
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def start(self, *arguments: str, **changes: str) -> subprocess.Popen[str]:
        """Starts the wrapper in a process group of its own."""
        return subprocess.Popen(
            [self.wrapper, *arguments],
            env=self.environment(**changes),
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def installations_begun(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


def write_program(file: Path, text: str) -> Path:
    """Writes an executable script."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)  # it may be a link to the machine's program
    file.write_text(textwrap.dedent(text))
    file.chmod(0o755)
    return file


def fake_bazel(file: Path, version: str, modules_resolve: bool) -> Path:
    """Writes a Bazel that answers --version and `mod graph`, and prints its arguments else."""
    return write_program(
        file,
        f"""\
        #!/bin/sh
        echo "$*" >>"{file}.calls"
        case "$*" in
        --version) echo "bazel {version}" ;;
        *"mod graph"*) exit {0 if modules_resolve else 1} ;;
        *) echo "pid=$$ {file.name} args=$*" ;;
        esac
        """,
    )


def make_checkout(source: Path, scratch: Path) -> Checkout:
    """Copies the wrapper and its scripts from `source`, with a fake installation step."""
    checkout = Checkout(
        root=scratch / "checkout",
        path=scratch / "path",
        prefix=scratch / "prefix",
        home=scratch / "home",
        log=scratch / "installations",
    )
    for name in (".bazelversion", "MODULE.bazel", "tools/bazel", "third_party/bazel"):
        target = checkout.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_dir():
            shutil.copytree(source / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source / name, target)
    scripts = checkout.root / "third_party" / "bazel"
    (scripts / "debian.sh").rename(scripts / "debian_real.sh")
    (scripts / "debian.sh").write_text(FAKE_DEBIAN)
    checkout.path.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool, path=os.defpath + ":/usr/local/bin:/usr/bin:/bin")
        assert found is not None, f"this machine has no {tool}, which tools/bazel needs"
        (checkout.path / tool).symlink_to(found)
    write_program(checkout.home / "python3.12", FAKE_PYTHON)
    return checkout
