"""Which actions a fleet runs, and where."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kabuild.execution.placement import Placement, kinds
from kabuild.model.action import Resources
from kabuild.model.platform import Platform
from tests.testkit.actions import command

ACTION = command("a")
CUDA = replace(ACTION, platform=Platform("cuda", (("arch", "sm_90"),)))
ON_DEVICE = replace(CUDA, resources=Resources(1, "cuda"))
TIMED = replace(CUDA, resources=Resources(1, "cuda", timed=True))
TIMED_CPU = replace(ACTION, resources=Resources(0, "cpu", timed=True))


@pytest.mark.parametrize(
    ("action", "names"),
    [
        (ACTION, ["cpu"]),
        (TIMED_CPU, ["cpu timed", "cpu"]),
        (CUDA, ["cpu"]),
        (ON_DEVICE, ["cuda:sm_90", "cuda"]),
        (TIMED, ["cuda:sm_90 timed", "cuda timed", "cuda:sm_90", "cuda"]),
    ],
)
def test_pools_go_from_special_to_general(action: object, names: list[str]) -> None:
    assert [*kinds(action)] == names  # type: ignore[arg-type]


def test_the_most_special_pool_is_taken() -> None:
    pools = {"cuda": {"pool": "any"}, "cuda:sm_90": {"pool": "h200"}, "cpu": {"pool": "c"}}
    placement = Placement(pools=pools)

    assert placement.routing(TIMED) == {"pool": "h200"}
    assert placement.routing(CUDA) == {"pool": "c"}
    assert Placement(pools={"cuda": {}}).routing(ACTION) is None
    assert Placement().routing(ACTION) == {}


def test_what_is_secret_stays_here() -> None:
    placement = Placement(private=frozenset({"//t:a"}))

    assert Placement().stays(ACTION) == ""
    assert placement.stays(ACTION) == "it knows a private salt"
    assert placement.stays(command("b")) == ""
    assert Placement().stays(replace(ACTION, secrets=("KEY",))) == "it has secrets"
    assert Placement().stays(replace(ACTION, network=True)) == "it uses the network"
    assert Placement().stays(command("a", outputs=(".kabuild/x",)))
