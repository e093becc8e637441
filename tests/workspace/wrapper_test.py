"""tools/bazel and the installation behind it, in real processes with fakes around."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.workspace.checkout import Checkout, fake_bazel, make_checkout, write_program


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return make_checkout(Path.cwd(), tmp_path)


def test_bazel_real_is_executed_with_the_same_arguments(checkout: Checkout, tmp_path: Path) -> None:
    real = fake_bazel(tmp_path / "real", "7.7.1", modules_resolve=True)
    process = checkout.start("build", "//a b", BAZEL_REAL=str(real))
    output, _ = process.communicate(timeout=30)
    assert output == f"pid={process.pid} real args=build //a b\n"  # the same process: it was exec'd
    assert checkout.installations_begun() == 0


def test_named_bazel_is_executed(checkout: Checkout, tmp_path: Path) -> None:
    named = fake_bazel(tmp_path / "named", "9.9.9", modules_resolve=False)
    assert "named args=info" in checkout.run("info", SLIPWAY_BAZEL=str(named)).stdout


def test_named_bazel_that_is_no_program(checkout: Checkout) -> None:
    result = checkout.run("info", SLIPWAY_BAZEL="/nowhere/bazel")
    assert result.returncode == 1
    assert result.stderr == (
        "tools/bazel: error: SLIPWAY_BAZEL=/nowhere/bazel is not a program; "
        "name a Bazel, or unset it to have one chosen\n"
    )


def test_output_user_root_becomes_a_startup_option(checkout: Checkout, tmp_path: Path) -> None:
    real = fake_bazel(tmp_path / "real", "7.7.1", modules_resolve=True)
    result = checkout.run("info", BAZEL_REAL=str(real), SLIPWAY_OUTPUT_USER_ROOT="/big/disk")
    assert "args=--output_user_root=/big/disk info" in result.stdout


def test_bazel_on_path_that_can_run_the_repository_is_taken(checkout: Checkout) -> None:
    bazel = fake_bazel(checkout.path / "bazel", "7.7.1", modules_resolve=True)
    first = checkout.run("--output_base=/x", "build", "//...")
    assert "bazel args=--output_base=/x build //..." in first.stdout
    assert f"trying whether {bazel} can run this repository (once)" in first.stderr
    calls = Path(f"{bazel}.calls")
    calls.unlink()
    second = checkout.run("version")
    assert "bazel args=version" in second.stdout
    assert second.stderr == ""
    assert calls.read_text() == "version\n"  # not tried again
    assert checkout.installations_begun() == 0


def test_bazelisk_goes_before_bazel(checkout: Checkout) -> None:
    fake_bazel(checkout.path / "bazel", "7.7.1", modules_resolve=True)
    write_program(
        checkout.path / "bazelisk",
        """\
        #!/bin/sh
        [ "$*" != --version ] || { echo "Bazelisk version: v1.28.1"; echo "bazel 7.7.1"; exit; }
        echo "bazelisk args=$*"
        """,
    )
    assert "bazelisk args=version" in checkout.run("version").stdout


@pytest.mark.parametrize(("version", "resolves"), [("8.4.0", True), ("7.7.10", True), ("7.7.1", False)])
def test_bazel_on_path_that_cannot_is_passed_by_once_and_with_a_word(
    checkout: Checkout, version: str, resolves: bool
) -> None:
    bazel = fake_bazel(checkout.path / "bazel", version, modules_resolve=resolves)
    first = checkout.run("version")
    assert (
        f"{bazel} cannot run this repository (no Bazel 7.7.1, or the module registry is not reached)"
        in first.stderr
    )
    assert f"to try again remove {checkout.prefix}/choice, to insist set SLIPWAY_BAZEL" in first.stderr
    assert "air_gapped.bazelrc version" in first.stdout
    second = checkout.run("version")
    assert "air_gapped.bazelrc version" in second.stdout
    assert second.stderr == ""


def test_one_program_of_two_names_is_tried_once(checkout: Checkout) -> None:
    bazel = fake_bazel(checkout.path / "bazel", "8.0.0", modules_resolve=True)
    (checkout.path / "bazelisk").symlink_to(bazel)
    assert checkout.run("version").stderr.count("cannot run this repository") == 1


def test_a_candidate_that_changed_is_tried_again(checkout: Checkout) -> None:
    fake_bazel(checkout.path / "bazel", "8.0.0", modules_resolve=True)
    assert "air_gapped" in checkout.run("version").stdout
    bazel = fake_bazel(checkout.path / "bazel", "7.7.1", modules_resolve=True)
    future = time.time() + 5
    os.utime(bazel, (future, future))
    assert "bazel args=version" in checkout.run("version").stdout


def test_the_wrapper_on_path_does_not_call_itself(checkout: Checkout) -> None:
    (checkout.path / "bazel").symlink_to(checkout.wrapper)
    result = checkout.run("version")
    assert "air_gapped.bazelrc version" in result.stdout
    assert "cannot run this repository" not in result.stderr


def test_the_wrapper_of_another_checkout_is_not_a_bazel(checkout: Checkout, tmp_path: Path) -> None:
    other = make_checkout(Path.cwd(), tmp_path / "other")
    (checkout.path / "bazel").symlink_to(other.wrapper)
    result = checkout.run("version")
    assert f"{checkout.path}/bazel cannot run this repository" in result.stderr
    assert "air_gapped.bazelrc version" in result.stdout


def test_the_wrapper_works_through_a_link_and_from_another_folder(checkout: Checkout, tmp_path: Path) -> None:
    link = tmp_path / "bin" / "slipway"
    link.parent.mkdir()
    link.symlink_to(os.path.relpath(checkout.wrapper, link.parent))
    result = subprocess.run(
        ["./slipway", "version"],
        env=checkout.environment(),
        cwd=link.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "air_gapped.bazelrc version" in result.stdout, result.stderr


def test_startup_options_reach_the_installed_bazel(checkout: Checkout) -> None:
    result = checkout.run("--output_base=/x", "build", "//...", SLIPWAY_OUTPUT_USER_ROOT="/y")
    rc = r"--bazelrc=\S+/modules-[0-9a-f]{16}/air_gapped.bazelrc"
    assert re.search(
        rf"args=--nosystem_rc {rc} --output_user_root=/y --output_base=/x build //...\n", result.stdout
    )


def test_an_installation_in_tmp_is_seen_in_sandboxes(checkout: Checkout) -> None:
    checkout.run("version")
    (link,) = checkout.prefix.glob("modules-????????????????")
    inside = str(checkout.prefix).startswith("/tmp/")
    expected = f"build --sandbox_add_mount_pair={link}/python"
    assert (expected in (link / "air_gapped.bazelrc").read_text().splitlines()) == inside


def test_the_interpreter_has_the_same_name_in_every_installation_of_a_prefix(checkout: Checkout) -> None:
    seen = []
    for _ in range(2):
        checkout.run("version")
        (link,) = checkout.prefix.glob("modules-????????????????")
        lines = (link / "air_gapped.bazelrc").read_text().splitlines()
        named = [line for line in lines if line.startswith("common --repo_env=SLIPWAY_PYTHON_3_12=")]
        seen.append((link.resolve().name, named))
        link.unlink()
    (first_folder, first), (second_folder, second) = seen
    assert first_folder != second_folder
    assert first == second == [f"common --repo_env=SLIPWAY_PYTHON_3_12={link}/python/bin/python3.12"]


def test_rules_shell_is_overridden_where_the_module_file_names_it(checkout: Checkout) -> None:
    assert "/rules_shell.bazelrc" not in checkout.run("version").stdout
    with (checkout.root / "MODULE.bazel").open("a") as file:
        file.write('bazel_dep(name = "rules_shell", version = "0.6.1")\n')
    assert "/rules_shell.bazelrc version" in checkout.run("version").stdout


def test_a_later_call_starts_no_program_and_is_quick(checkout: Checkout) -> None:
    checkout.run("version")
    for tool in checkout.path.iterdir():
        if tool.name != "bash":
            tool.unlink()
    seconds = []
    for _ in range(5):
        begun = time.monotonic()
        result = checkout.run("version")
        seconds.append(time.monotonic() - begun)
        assert "air_gapped.bazelrc version" in result.stdout, result.stderr
        assert result.stderr == ""
    assert min(seconds) < 0.1


def test_a_changed_recipe_is_installed_anew_and_the_packages_stay(checkout: Checkout) -> None:
    before = checkout.run("version").stdout
    module = checkout.root / "third_party/bazel/overlay/rules_python/python/extensions/pip.bzl"
    module.write_text(module.read_text() + "# changed\n")
    after = checkout.run("version").stdout
    assert before.split("args=")[1] != after.split("args=")[1]
    assert checkout.installations_begun() == 1


def test_two_first_calls_at_once_install_once(checkout: Checkout) -> None:
    calls = [checkout.start("version", INSTALL_SECONDS="1") for _ in range(2)]
    answers = [call.communicate(timeout=60) for call in calls]
    assert [call.returncode for call in calls] == [0, 0]
    assert all("air_gapped.bazelrc version" in output for output, _ in answers)
    assert checkout.installations_begun() == 1
    assert sum("another call is installing" in errors for _, errors in answers) == 1


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_installation_is_done_again_and_leaves_nothing(
    checkout: Checkout, kill: signal.Signals
) -> None:
    process = checkout.start("version", INSTALL_SECONDS="30")
    deadline = time.monotonic() + 30
    while checkout.installations_begun() == 0:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, kill)
    output, _ = process.communicate(timeout=30)
    assert process.returncode != 0
    assert output == ""
    assert not list(checkout.prefix.glob("debian-????????????????"))
    again = checkout.run("version")
    assert "air_gapped.bazelrc version" in again.stdout, again.stderr
    folders = [entry for entry in checkout.prefix.iterdir() if entry.is_dir() and not entry.is_symlink()]
    links = {entry.readlink().name for entry in checkout.prefix.iterdir() if entry.is_symlink()}
    assert {folder.name for folder in folders} == links


def test_another_minor_version_is_taken_with_one_line_of_warning(checkout: Checkout) -> None:
    checkout.run("version", INSTALL_VERSION="7.9.0")
    result = checkout.run("version")
    assert "air_gapped.bazelrc version" in result.stdout
    assert result.stderr == (
        "tools/bazel: warning: Debian forky has Bazel 7.9.0, not the 7.7.1 of .bazelversion; "
        "going on with it\n"
    )


def test_another_major_version_is_refused(checkout: Checkout) -> None:
    result = checkout.run("version", INSTALL_VERSION="8.1.0")
    assert result.returncode == 1
    assert (
        "tools/bazel: error: Debian forky has Bazel 8.1.0, and .bazelversion asks for 7.7.1, "
        "another major version; install Bazelisk, or name a folder with the packages of Bazel 7 in "
        "SLIPWAY_DEBIAN_PACKAGES\n" in result.stderr
    )


def test_no_python(checkout: Checkout) -> None:
    write_program(checkout.path / "timeout", "#!/bin/sh\nexit 1\n")  # no candidate answers
    result = checkout.run("version", SLIPWAY_PYTHON="")
    assert result.returncode == 1
    assert result.stderr == (
        "tools/bazel: error: no Python 3.12 with pip found (looked for python3.12 and python3 on PATH, in "
        "pyenv's and uv's folders, /usr/local/bin and /usr/bin); install Python 3.12, or set "
        "SLIPWAY_PYTHON=/path/to/python3.12\n"
    )


def test_a_python_is_named_once(checkout: Checkout) -> None:
    assert checkout.run("version").returncode == 0
    installed = checkout.log.read_text()
    write_program(checkout.path / "timeout", "#!/bin/sh\nexit 1\n")  # a search would find none
    result = checkout.run("version", SLIPWAY_PYTHON="")
    assert result.returncode == 0, result.stderr
    assert checkout.log.read_text() == installed


def test_named_python_that_is_none(checkout: Checkout) -> None:
    old = write_program(checkout.home / "old", "#!/bin/sh\necho 'SyntaxError: what' >&2\nexit 1\n")
    result = checkout.run("version", SLIPWAY_PYTHON=str(old))
    assert result.returncode == 1
    assert result.stderr == (
        "SyntaxError: what\n"
        f"tools/bazel: error: SLIPWAY_PYTHON={old} is not a Python 3.12 with pip; "
        "name one that is, or unset it to have one searched for\n"
    )


def test_a_shim_that_fails_is_passed_by_for_the_version_managers_folder(checkout: Checkout) -> None:
    write_program(checkout.path / "python3.12", "#!/bin/sh\necho 'command not found' >&2\nexit 127\n")
    real = write_program(
        checkout.home / ".pyenv/versions/3.12.9/bin/python3.12", (checkout.home / "python3.12").read_text()
    )
    result = checkout.run("version", SLIPWAY_PYTHON="")
    assert f"ready: Bazel 7.7.1 with {real} in {checkout.prefix}" in result.stderr


def test_full_disk(checkout: Checkout) -> None:
    write_program(checkout.path / "df", "#!/bin/sh\necho header\necho x 1 1 123 1 /\n")
    result = checkout.run("version")
    assert result.returncode == 1
    assert result.stderr == (
        f"tools/bazel: error: {checkout.prefix} has 123 MB free, 700 MB are needed; "
        "make room, or set SLIPWAY_BAZEL_PREFIX to a folder on another disk\n"
    )


def use_real_debian_step(checkout: Checkout) -> None:
    scripts = checkout.root / "third_party" / "bazel"
    (scripts / "debian_real.sh").rename(scripts / "debian.sh")
    for tool in ("dpkg-deb", "apt-cache"):
        write_program(checkout.path / tool, "#!/bin/sh\n")
    write_program(checkout.path / "dpkg", "#!/bin/sh\necho amd64\n")


def test_no_package_lists(checkout: Checkout) -> None:
    if not Path("/usr/share/keyrings/debian-archive-keyring.gpg").exists():
        pytest.skip("this machine is no Debian")
    use_real_debian_step(checkout)
    write_program(checkout.path / "apt-get", "#!/bin/sh\nexit 100\n")
    result = checkout.run("version", SLIPWAY_DEBIAN_MIRROR="http://archive.invalid/debian")
    assert result.returncode == 1
    assert result.stderr.endswith(
        "tools/bazel: error: cannot read the package lists of Debian forky at http://archive.invalid/debian; "
        "check the network, or set SLIPWAY_DEBIAN_MIRROR or SLIPWAY_DEBIAN_PACKAGES\n"
    )


def test_no_apt(checkout: Checkout) -> None:
    use_real_debian_step(checkout)
    (checkout.path / "apt-cache").unlink()
    result = checkout.run("version")
    assert result.returncode == 1
    assert (
        "error: not on PATH: apt-get apt-cache; install the packages that hold them and call again"
        in result.stderr
    )


def test_another_architecture(checkout: Checkout) -> None:
    use_real_debian_step(checkout)
    write_program(checkout.path / "dpkg", "#!/bin/sh\necho arm64\n")
    result = checkout.run("version")
    assert "Debian's Bazel is installed on amd64 only, and this is arm64; install Bazelisk" in result.stderr


def test_kept_packages_that_were_changed(checkout: Checkout, tmp_path: Path) -> None:
    use_real_debian_step(checkout)
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "bazel.deb").write_text("changed")
    (packages / "SHA256SUMS").write_text(f"{'0' * 64}  bazel.deb\n")
    result = checkout.run("version", SLIPWAY_DEBIAN_PACKAGES=str(packages))
    assert result.returncode == 1
    assert f"a package in {packages} differs from its SHA256SUMS; fetch the packages anew" in result.stderr


def test_prefix_with_a_space(checkout: Checkout) -> None:
    result = checkout.run("version", SLIPWAY_BAZEL_PREFIX=f"{checkout.prefix} two")
    assert result.returncode == 1
    assert (
        "has a character other than A-Za-z0-9_./+@=-; set SLIPWAY_BAZEL_PREFIX to a folder without"
        in result.stderr
    )


def test_prefix_that_cannot_be_made(checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = checkout.run("version", SLIPWAY_BAZEL_PREFIX=str(tmp_path / "file" / "prefix"))
    assert result.returncode == 1
    assert f"cannot create the folder {tmp_path}/file/prefix; set SLIPWAY_BAZEL_PREFIX" in result.stderr


def test_no_home(checkout: Checkout) -> None:
    result = checkout.run("version", HOME="", SLIPWAY_BAZEL_PREFIX="")
    assert result.returncode == 1
    assert result.stderr == (
        "tools/bazel: error: HOME is not set; set it, or SLIPWAY_BAZEL_PREFIX to a folder for Bazel\n"
    )


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
