"""From a checkout to a manifest: what is read, what is taken over, and every reason to refuse."""

import os
import re
import shutil
import sys

import pytest

from tools.launcher.catalog.load import load_runtime_manifest
from tools.launcher.documents.strict_yaml import DocumentError, load_yaml
from tools.launcher.runtime_import.base_config import BASE_CONFIG, read_base_config, recipe_keys
from tools.launcher.runtime_import.changes import compare
from tools.launcher.runtime_import.checkout import MAX_FILE_BYTES, Checkout, ImportProblem
from tools.launcher.runtime_import.checkout_for_test import (
    BASE,
    COMMIT,
    ENVIRONMENTS,
    ESTIMATORS,
    PINNED_FILE,
    REDUCTION,
    REGISTRY,
    TRANSLATION,
    pinned,
    write,
    write_checkout,
)
from tools.launcher.runtime_import.manifest import import_manifest
from tools.launcher.runtime_import.manifest_text import blocks, key_line, taken_over, written
from tools.launcher.runtime_import.registries import read_registries

TEXT = PINNED_FILE.read_text(encoding="utf-8")


@pytest.fixture(scope="module", name="template")
def _template(tmp_path_factory):
    return write_checkout(tmp_path_factory.mktemp("checkout"), pinned())


@pytest.fixture(name="root")
def _root(tmp_path, template):
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return tmp_path


def imported(root, **options):
    return import_manifest(Checkout(root), COMMIT, pinned(), PINNED_FILE.read_bytes(), **options)


def test_a_checkout_that_says_what_the_manifest_says_changes_nothing(root):
    result = imported(root)
    changes = compare(pinned(), result.manifest)
    assert not changes._replace(values=()).any
    # The list of environments is this commit's own now.
    assert [move.name for move in changes.values] == ["env_classes_complete"]
    assert result.manifest.recipe_keys == pinned().recipe_keys
    assert result.manifest.entrypoints == pinned().entrypoints
    assert result.notes == ()


def test_the_keys_are_written_line_for_line_like_the_project_writes_them(root):
    def keys(text):
        return re.search(r"^recipe_keys:\n((?:  .*\n)+)", text, re.MULTILINE)[1]

    assert keys(imported(root).text.decode()) == keys(TEXT)
    assert "".join(key_line(path, key) for path, key in pinned().recipe_keys.items()) == keys(TEXT)


def test_read_and_taken_over_facts_are_told_apart(root):
    result = imported(root)
    text = result.text.decode()
    assert text.startswith(
        "# yaml-language-server: $schema=../../docs/schemas/runtime_manifest.schema.json\n"
    )
    assert "\n# What MarinSkyRL 01234567 accepts. Facts only.\n" in text
    assert f"\n# {REDUCTION}@01234567; high\nloss_reductions: [" in text
    assert "\n# taken over from the manifest of 81ae0ef7, not read\n# marin-core 0.2.210; high." in text
    assert "marin_core: 0.2.210  # taken over from the manifest of 81ae0ef7, not read\n" in text
    assert {"strategies", "recipe_enums", "marin_core", "launcher_owned"} <= result.taken_over.keys()
    assert result.read["advantage_estimators"] == (REGISTRY, ESTIMATORS)
    assert not result.taken_over.keys() & result.read.keys()
    assert f"MarinSkyRL {ENVIRONMENTS}@{COMMIT}" in result.manifest.sources
    assert result.manifest.name == "marinskyrl-01234567" and result.manifest.commit == COMMIT


def test_a_second_import_keeps_the_commit_that_a_fact_is_from(root):
    first = imported(root)
    second = import_manifest(Checkout(root), "f" * 40, first.manifest, first.text, marin_core="0.2.211")
    text = second.text.decode()
    assert "# taken over from the manifest of 81ae0ef7, not read\n" in text
    assert "manifest of 01234567" not in text
    assert "marin_core: 0.2.211\n" in text and "marin_core" not in second.taken_over


def test_what_a_checkout_changes(root):
    manifest = pinned()
    text = (root / BASE).read_text()
    text = text.replace("  epochs: 1\n", "  epochs: 2\n").replace("  bf16: true\n", "  bf16: half\n")
    text = text.replace("  log_level: INFO\n", "  log_depth: 3\n  log_when: null\n")
    write(root, BASE, f"{text}legacy:\n  kept: 1\n")
    write(
        root,
        ENVIRONMENTS,
        'register(id="gsm8k", entry_point="x:Y")\nregister(id="maze", entry_point="x:Y")\n',
    )
    write(root, REGISTRY, (root / REGISTRY).read_text().replace('RLOO = "rloo"', 'UNIFORM = "uniform"'))
    write(
        root,
        TRANSLATION,
        (root / TRANSLATION)
        .read_text()
        .replace('    STANDARD = "standard"\n', '    STANDARD = "standard"\n    REPLAY = "replay"\n')
        .replace("raw.get('trainer')", "raw.get('curriculum')")
        .replace("    Entry.STANDARD:", '    Entry.REPLAY: "skyrl_train.replay",\n    Entry.STANDARD:'),
    )
    result = imported(root)
    changes = compare(manifest, result.manifest)
    assert [path for path, _ in changes.added] == ["legacy.kept", "trainer.log_depth", "trainer.log_when"]
    assert [path for path, _ in changes.removed] == ["trainer.log_level"]
    assert changes.defaults == (("trainer.bf16", True, "half"), ("trainer.epochs", 1, 2))
    assert changes.types == (("trainer.bf16", "bool", "str"),)
    assert changes.entries_added == {"env_classes": ("maze",), "advantage_estimators": ("uniform",)}
    assert changes.entries_removed["advantage_estimators"] == ("rloo",)
    assert changes.entries_removed["group_relative_estimators"] == ("rloo",)
    assert result.manifest.recipe_keys["legacy.kept"].owner == "dropped"
    assert result.manifest.recipe_keys["trainer.log_when"].type == "any"
    assert result.notes == (
        "enter the entry point 'replay' (module skyrl_train.replay) by hand: its training type is code, not data",
        "enter 'curriculum' in recipe_top_level if it is a key of the recipe: the launcher looks it up",
        "enter 'uniform' in group_relative_estimators if it compares answers inside a group",
        "the type of trainer.log_when is not known: its default is null",
    )


def test_notes_about_what_no_longer_fits(root):
    text = (root / BASE).read_text()
    write(
        root,
        BASE,
        text.replace("  strategy: fsdp2\n", "  strategy: zero\n").replace("  resume_mode: latest\n", ""),
    )
    write(root, TRANSLATION, 'RL_ENTRYPOINTS = {"generate": "skyrl_train.entrypoints.main_generate"}\n')
    assert imported(root).notes == (
        "default_entrypoint 'standard' is no entry point any more: correct it",
        "enter 'zero' in strategies: it is the default of the base configuration",
        "recipe_enums still has trainer.resume_mode, which is gone: delete it",
    )


@pytest.mark.parametrize(
    ("path", "text", "field", "reason"),
    [
        (TRANSLATION, None, "open_roots", "there is no module cloud.iris.rl_config_translation"),
        (TRANSLATION, "x = (", "open_roots", f"{TRANSLATION} is not readable Python at line 1"),
        (TRANSLATION, "x = '\0'", "open_roots", f"{TRANSLATION} is not readable Python"),
        (TRANSLATION, b"\xff", "open_roots", f"{TRANSLATION}: byte 0 is not UTF-8 text"),
        (TRANSLATION, f"x = {'(' * 5000}{')' * 5000}", "open_roots", f"{TRANSLATION} is not readable Python"),
        (TRANSLATION, "y = 1", "open_roots", f"{TRANSLATION} has no constant _OPEN_CONFIG_ROOTS"),
        (
            TRANSLATION,
            "_OPEN_CONFIG_ROOTS = frozenset(f())",
            "open_roots",
            f"_OPEN_CONFIG_ROOTS in {TRANSLATION} is no plain list of text",
        ),
        (TRANSLATION, "A = B\nB = A\n_OPEN_CONFIG_ROOTS = A", "open_roots", "is no plain list of text"),
        (TRANSLATION, "RL_ENTRYPOINTS = {**x}", "entrypoints", "is no plain mapping of text"),
        (TRANSLATION, "RL_ENTRYPOINTS = {'a': 3}", "entrypoints", "is no plain mapping of text"),
        (
            TRANSLATION,
            "from nowhere import X\nRL_ENTRYPOINTS = {'a': X}",
            "entrypoints",
            "there is no module nowhere",
        ),
        (ENVIRONMENTS, "register(1)", "env_classes", "has no plain register(id=...) calls"),
        (ENVIRONMENTS, "register(id=name())", "env_classes", "has no plain register(id=...) calls"),
        (
            REGISTRY,
            "",
            "policy_losses",
            "no PolicyLossType in skyrl_train.utils.algorithm_registry, skyrl_train",
        ),
    ],
)
def test_a_registry_that_cannot_be_read_is_left_with_the_reason(root, path, text, field, reason):
    if text is None:
        (root / path).unlink()
    else:
        write(root, path, text)
    facts = read_registries(Checkout(root))
    assert reason in facts.unread[field] and field not in facts.read


def test_a_registry_that_cannot_be_read_is_taken_over(root):
    (root / REDUCTION).unlink()
    result = imported(root)
    assert result.taken_over["loss_reductions"] == "there is no module skyrl_train.utils.loss_reduction"
    assert result.manifest.loss_reductions == pinned().loss_reductions


def test_older_places_of_the_registries_are_read_too(root):
    (root / REGISTRY).unlink()
    (root / ESTIMATORS).unlink()
    text = (
        "class PolicyLossType(StrEnum):\n    REGULAR = 'regular'\n\n\n"
        "@register_policy_loss(PolicyLossType.REGULAR.value)\ndef one(): ...\n\n\n"
        "@register_policy_loss('mine')\ndef two(): ...\n"
    )
    write(root, "skyrl-train/skyrl_train/utils/ppo_utils.py", text)
    assert read_registries(Checkout(root)).read["policy_losses"].value == ["regular", "mine"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            None,
            f"there is no {BASE_CONFIG}, here or in skyrl-train. Give the folder of a MarinSkyRL checkout",
        ),
        ("defaults: 3\n", f"{BASE}: `defaults` is no list. Restore the file of the commit"),
        (
            "defaults: [3]\n",
            f"{BASE}: the entry 3 of `defaults` is not `group: file` or `group@package: file`",
        ),
        ("defaults: [{a: b, c: d}]\n", "of `defaults` is not `group: file`"),
        ("defaults: [{a: [b]}]\n", "of `defaults` is not `group: file`"),
        (
            "defaults: [{lost: one}]\n",
            f"skyrl-train/skyrl_train/config/lost/one.yaml: {BASE} names this file, and there is none",
        ),
        ("a.b: 1\n", "the key 'a.b' is no plain word. Enter it in the manifest by hand"),
        ('"a\\e[31m": 1\n', r"the key 'a\x1b[31m' is no plain word. Enter it in the manifest by hand"),
        ("a: 1\n" * 2, f"{BASE}:2:1: the key 'a' appears twice in one mapping"),
        ("- a\n", f"{BASE}: the document is a list, not a mapping"),
        (b"\xff\xfe", f"{BASE}: byte 0 is not UTF-8 text. Restore the file of the commit"),
        ("#" * (MAX_FILE_BYTES + 1), f"{BASE}: the file has {MAX_FILE_BYTES + 1} bytes, the limit is"),
    ],
)
def test_a_base_configuration_that_cannot_be_read_stops_the_import(root, text, sentence):
    if text is None:
        (root / BASE).unlink()
    else:
        write(root, BASE, text)
    with pytest.raises((ImportProblem, DocumentError)) as caught:
        imported(root)
    assert sentence in str(caught.value)


def test_groups_are_placed_like_hydra_places_them(tmp_path):
    write(
        tmp_path,
        BASE,
        "defaults:\n- one: a\n- optional two@x.y: b.yaml\n- _self_\n- three/deep: c\n- four: d\nx: {y: {kept: 1}}\n",
    )
    config = "skyrl-train/skyrl_train/config"
    write(tmp_path, f"{config}/one/a.yaml", "# A comment.\n# @package trainer.opt\nlr: 1e-2\n")
    write(tmp_path, f"{config}/two/b.yaml", "# @package elsewhere\nadded: 2\nkept: 9\n")
    write(tmp_path, f"{config}/three/deep/c.yaml", "leaf: {}\n")
    write(tmp_path, f"{config}/four/d.yaml", "# @package _global_\n# nothing\n")
    base = read_base_config(Checkout(tmp_path))
    assert base.leaves() == {"trainer.opt.lr": 0.01, "x.y.added": 2, "x.y.kept": 1, "three.deep.leaf": {}}
    assert base.places[0] == BASE and len(base.places) == 5


def test_a_group_with_defaults_of_its_own_stops_the_import(tmp_path):
    write(tmp_path, BASE, "defaults: [{one: a}]\n")
    write(tmp_path, "skyrl-train/skyrl_train/config/one/a.yaml", "defaults: [b]\n")
    with pytest.raises(ImportProblem, match="a group with a `defaults` list of its own is not read"):
        read_base_config(Checkout(tmp_path))


def test_types_of_new_keys(tmp_path):
    write(
        tmp_path,
        BASE,
        "trainer:\n  a: 1\n  b: 1.5\n  c: true\n  d: x\n  e: [1]\n  f: {}\n  g: null\n  h: '${trainer.a}'\n"
        "  i: '${oc.env:HOME}/x'\n  j: '${trainer.j}'\n  k: '${trainer.g}'\n  l: ['${trainer.a}']\n"
        "  m: '${trainer.section}'\n  section: {n: 1}\n  rope_scaling: {}\n",
    )
    keys = recipe_keys(read_base_config(Checkout(tmp_path)), pinned())
    types = {
        path.removeprefix("trainer."): (key.type, key.nullable, key.inferred) for path, key in keys.items()
    }
    assert types == {
        "a": ("int", False, False),
        "b": ("float", False, False),
        "c": ("bool", False, False),
        "d": ("str", False, False),
        "e": ("list", False, False),
        "f": ("map", False, False),
        "g": ("any", True, True),
        "h": ("int", False, True),
        "i": ("str", False, True),
        "j": ("any", False, True),
        "k": ("any", True, True),
        "l": ("list", False, True),
        "m": ("map", False, True),
        "section.n": ("int", False, False),
        "rope_scaling": ("map", False, False),
    }
    assert keys["trainer.rope_scaling"].open and not keys["trainer.f"].open


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(
        ImportProblem, match=r"missing: there is no such folder\. Give the checkout of MarinSkyRL"
    ):
        Checkout(tmp_path / "missing")


def test_links_stay_inside_and_odd_files_are_refused(tmp_path):
    outside = tmp_path / "secret.yaml"
    outside.write_text("a: 1\n")
    root = tmp_path / "checkout"
    write(root, "real.yaml", "a: 1\n")
    (root / "inside").symlink_to("real.yaml")
    (root / "outside").symlink_to(outside)
    (root / "loop").symlink_to("loop")
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    checkout = Checkout(root)
    assert checkout.read("inside") == "a: 1\n"
    for name, sentence in (
        ("outside", "outside: the link leads outside the checkout. Put the file in its place"),
        ("loop", "loop: links that lead in a circle. Restore the file of the commit"),
        ("folder", "folder: this is no regular file. Restore the file of the commit"),
        ("pipe", "pipe: this is no regular file"),
        ("missing", "missing: No such file or directory. Restore the file of the commit"),
    ):
        with pytest.raises(ImportProblem) as caught:
            checkout.read(name)
        assert sentence in str(caught.value)
    assert checkout.find("loop") == "loop" and checkout.find("nothing") is None


@pytest.mark.parametrize(
    ("files", "head"),
    [
        ({}, None),
        ({".git/HEAD": COMMIT}, COMMIT),
        ({".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": f"{COMMIT}\n"}, COMMIT),
        (
            {
                ".git/HEAD": "ref: refs/heads/main\n",
                ".git/packed-refs": f"# pack\n{COMMIT} refs/heads/main\n",
            },
            COMMIT,
        ),
        ({".git": "gitdir: meta\n", "meta/HEAD": f"{COMMIT}\n"}, COMMIT),
        (
            {
                ".git": "gitdir: meta\n",
                "meta/HEAD": "ref: refs/heads/x\n",
                "meta/commondir": "../common\n",
                "common/packed-refs": f"{COMMIT} refs/heads/x\n",
            },
            COMMIT,
        ),
        ({".git/HEAD": "ref: refs/heads/gone\n"}, None),
        ({".git/HEAD": "ref: ../../secret\n", "secret": COMMIT}, None),
        ({".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": "short\n"}, None),
        ({".git/HEAD": "01234567"}, None),
        ({".git/HEAD": b"\xff"}, None),
        ({".git": "gitdir: nowhere\n"}, None),
    ],
)
def test_the_commit_is_read_from_git_metadata(tmp_path, files, head):
    for path, text in files.items():
        write(tmp_path, path, text)
    assert Checkout(tmp_path).head() == head


def test_a_manifest_is_split_into_blocks_and_put_together_again():
    found = blocks(TEXT)
    assert "".join("".join(f"{line}\n" for line in block.comments) + block.body for block in found) == TEXT
    assert len({block.field for block in found}) == len(found)
    inner = blocks("# about\na:\n  - 1\n\n# inside\n  - 2\nb: 3\n")
    assert inner[0].body == "a:\n  - 1\n\n# inside\n  - 2\n" and inner[1].body == "b: 3\n"
    assert (
        taken_over(inner[0], COMMIT)
        == "# taken over from the manifest of 01234567, not read\n# about\n" + inner[0].body
    )


def test_values_are_written_so_that_they_are_read_again():
    values = {"names": ["1e-6", "a: b", "off", "${x}", "<|end|>", "long" * 40], "one": "1e-6", "flag": True}
    text = "".join(written(field, value, "x; high") for field, value in values.items())
    assert load_yaml(text.encode(), source="x") == values
    assert "\n  - '1e-6'\n" in text and "\nflag: true\n" in text


def test_the_written_manifest_is_read_again(root):
    result = imported(root)
    assert load_runtime_manifest(result.text, source="new.yaml") == result.manifest


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
