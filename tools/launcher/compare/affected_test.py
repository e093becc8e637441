import re
import sys

import pytest

from tools.launcher.compare.affected import AffectedReport, affected_report
from tools.launcher.compare.digest_manifest import (
    DigestManifest,
    ExperimentDigests,
    dump_manifest,
    load_manifest,
)
from tools.launcher.compare.render_affected import affected_json, affected_markdown, affected_text
from tools.launcher.documents.strict_yaml import DocumentError


def digests(recipe: str, launch: str = "0", version: str = "2026.11.30") -> ExperimentDigests:
    return ExperimentDigests(version=version, recipe=recipe * 64, launch=launch * 64)


def manifest(refused: dict[str, str] | None = None, **experiments: ExperimentDigests) -> DigestManifest:
    return DigestManifest(
        schema=1,
        experiments={f"//x/{name}:{name}": value for name, value in experiments.items()},
        refused=refused or {},
    )


def report(base: DigestManifest, head: DigestManifest) -> AffectedReport:
    return affected_report(base, head, names=("main", "HEAD"))


BASE = manifest(
    {"//x/never:never": "ART-01 at run.id: bad", "//x/healed:healed": "bad"},
    same=digests("a"),
    moved=digests("a"),
    changed=digests("a"),
    released=digests("a"),
    dev=digests("a", version="dev"),
    gone=digests("a"),
    broken=digests("a"),
    unread=digests("a"),
)
HEAD = manifest(
    {
        "//x/never:never": "ART-01 at run.id: bad",
        "//x/broken:broken": "GEO-08 at skyrl.x: too few",
        "//x/unread": "syntax error",
        "//x/newly": "syntax error",
    },
    same=digests("a"),
    moved=digests("a", "1"),
    changed=digests("b", "1"),
    released=digests("b", "1", "2026.12.01"),
    dev=digests("b", "1", "dev"),
    healed=digests("c"),
    fresh=digests("d"),
)


def test_what_became_of_each_experiment():
    found = report(BASE, HEAD)
    assert [(item.effect, item.label, item.sentence) for item in found.affected] == [
        ("refused", "//x/broken:broken", "does not build any more: GEO-08 at skyrl.x: too few"),
        ("refused", "//x/newly", "does not build: syntax error"),
        ("refused", "//x/unread:unread", "does not build any more: syntax error"),
        (
            "recipe",
            "//x/changed:changed",
            "2026.11.30 now means another recipe: publish a new version, unless nobody launched it",
        ),
        ("recipe", "//x/dev:dev", "dev is no fixed version and may change"),
        ("recipe", "//x/released:released", "new version 2026.11.30 -> 2026.12.01"),
        (
            "launch",
            "//x/moved:moved",
            "the same recipe in another place or with other limits; its version stays",
        ),
        ("new", "//x/fresh:fresh", "version 2026.11.30"),
        ("removed", "//x/gone:gone", "no such experiment any more"),
        ("repaired", "//x/healed:healed", "builds again"),
    ]
    assert found.unaffected == 1 and found.refused_before == ("//x/never:never",)
    assert found.touches_recipe()


@pytest.mark.parametrize("state", [BASE, HEAD])
def test_nothing_is_affected_where_nothing_changed(state):
    found = report(state, state)
    assert found.affected == () and not found.touches_recipe()
    assert affected_json(found)["unaffected"] == len(state.experiments)
    assert list(affected_markdown(found)) == [
        (
            f"**main to HEAD: no experiment affected; {len(state.experiments)} unaffected; "
            f"{len(state.refused)} experiment{'' if len(state.refused) == 1 else 's'} built in neither**"
        )
    ]


def test_placement_alone_touches_no_recipe():
    assert not report(manifest(x=digests("a")), manifest(x=digests("a", "1"))).touches_recipe()


def test_text_and_table_name_the_digests_that_moved():
    text = [line.text for line in affected_text(report(BASE, HEAD))]
    assert text[3].startswith("recipe    //x/changed:changed    2026.11.30 now means another recipe")
    assert text[3].endswith("(recipe aaaaaaaa -> bbbbbbbb)")
    assert text[-1] == (
        "main to HEAD: 3 refused, 3 recipe, 1 launch, 1 new, 1 removed, 1 repaired; 1 unaffected; 1 experiment built "
        "in neither"
    )
    table = list(affected_markdown(report(BASE, HEAD)))
    assert table[2:4] == ["| experiment | what | recipe | launch | meaning |", "|---|---|---|---|---|"]
    assert len({row.count("|") for row in table[2:]}) == 1
    moved = next(row for row in table if "//x/moved" in row)
    assert moved.startswith("| //x/moved:moved | launch | aaaaaaaa | 00000000 -> 11111111 | the same recipe")


def with_graph(digit: str | None) -> ExperimentDigests:
    return digests("a").model_copy(update={"graph": None if digit is None else digit * 64})


def test_another_deadline_or_evaluation_is_told_though_no_digest_of_the_document_has_it():
    found = report(manifest(x=with_graph("1")), manifest(x=with_graph("2")))
    assert [line.text for line in affected_text(found)] == [
        (
            "graph     //x/x:x  the same launch document; another deadline, other credentials, or other steps after "
            "training (graph 11111111 -> 22222222)"
        ),
        "main to HEAD: 1 graph; 0 unaffected",
    ]
    assert not found.touches_recipe()
    for older in (manifest(x=with_graph(None)), manifest(x=with_graph("2"))):
        assert report(older, manifest(x=with_graph("2"))).affected == ()


def test_an_experiment_that_moved_is_told_to_be_the_same():
    found = report(manifest(old=digests("a"), other=digests("b")), manifest(moved=digests("a")))
    assert [(item.effect, item.label, item.sentence) for item in found.affected] == [
        ("new", "//x/moved:moved", "version 2026.11.30, what //x/old:old was"),
        ("removed", "//x/old:old", "no such experiment any more"),
        ("removed", "//x/other:other", "no such experiment any more"),
    ]


def test_names_cannot_leave_their_cell_nor_the_table_its_comment():
    nasty = {f"//x/<b>|\n@all`{number}:x": digests("a") for number in range(1000)}
    found = report(DigestManifest(schema=1, experiments={}), DigestManifest(schema=1, experiments=nasty))
    table = list(affected_markdown(found))
    assert len("\n".join(table)) < 65_536 and re.fullmatch(r"\| \d+ more \| .* shows all \|", table[-1])
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in table[2:]} == {6}
    assert all(row.isprintable() and "<b>" not in row and "@" not in row for row in table)
    assert all(line.text.isprintable() for line in affected_text(found))


def test_a_manifest_is_read_as_it_was_written():
    assert load_manifest(dump_manifest(HEAD), source="x") == HEAD
    assert dump_manifest(load_manifest(dump_manifest(HEAD), source="x")) == dump_manifest(HEAD)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"{", ""),
        (b'{"schema": 2, "experiments": {}}', "schema"),
        (b'{"experiments": {"//x:x": {}}}', "experiments.//x:x.version"),
    ],
)
def test_what_is_no_manifest_is_refused_with_its_place(data, place):
    with pytest.raises(DocumentError) as refusal:
        load_manifest(data, source="x.json")
    assert "this is no digest manifest" in str(refusal.value) and place in str(refusal.value)
    assert "Name the file that a digest_manifest target builds, or a git revision" in str(refusal.value)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
