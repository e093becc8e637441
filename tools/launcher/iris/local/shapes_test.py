"""Tests of which gangs the embedded cluster offers."""

import sys

import pytest

from tools.launcher.iris.local.shapes import GangShape, ShapeNotOffered, check_offered


@pytest.mark.parametrize("nodes", [*range(1, 17), 20, 24, 32])
@pytest.mark.parametrize(("variant", "gpus"), [("H100", 8), ("H200", 8), ("GB200", 4), ("H100", 1)])
def test_offered(variant: str, gpus: int, nodes: int) -> None:
    check_offered(GangShape(variant, gpus, nodes))


@pytest.mark.parametrize(
    ("variant", "gpus", "nodes"),
    [
        ("B300", 8, 1),
        ("GB200", 8, 1),
        ("H100", 16, 1),
        ("H100", 0, 1),
        ("H100", 8, 17),
        ("H100", 8, 64),
        ("H100", 8, 0),
    ],
)
def test_not_offered(variant: str, gpus: int, nodes: int) -> None:
    with pytest.raises(ShapeNotOffered):
        check_offered(GangShape(variant, gpus, nodes))


def test_the_sentence() -> None:
    with pytest.raises(ShapeNotOffered) as caught:
        check_offered(GangShape("H100", 8, 17))
    assert str(caught.value) == (
        "the embedded cluster has no gang of 17 nodes with 8 x H100 each; it has nodes with up to 8 x H100, "
        "8 x H200, 4 x GB200, in gangs of 1 to 16, 20, 24, 32 nodes. "
        "Rehearse a smaller plan, or launch on a real cluster"
    )


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
