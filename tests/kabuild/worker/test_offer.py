"""What a node offers, as it says it and as others read it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from kabuild.base.canonical import canonical_json
from kabuild.cli.doctor_fleet import compare_toolchains
from kabuild.cli.finding import State
from kabuild.model.action import Resources, Toolchain
from kabuild.model.device import Devices
from kabuild.model.digest import Digest
from kabuild.model.platform import Platform
from kabuild.worker.offer import Offer, Offered
from tests.testkit.actions import command

ON_DEVICE = Resources(1, "cuda")


def python(version: str) -> bytes:
    """The fingerprint of an environment with PyTorch."""
    torch = {"name": "torch", "version": version, "record": version}
    return canonical_json({"kind": "environment", "schema": 1, "distributions": [torch]})


TOOL = Toolchain("python", "python", python("2.11.0"), "/there")
OFFER = Offer(
    {
        "cpu": Platform("cpu", (("arch", "x86_64"), ("device", "EPYC"))),
        "cuda": Platform("cuda", (("arch", "sm_90"), ("device", "H200"))),
    },
    Devices(),
    {Digest.of(TOOL.fingerprint).hash: TOOL},
    8,
)


def test_an_offer_is_read_as_it_was_said() -> None:
    offered = Offered.from_json(OFFER.to_json())

    assert (offered.jobs, offered.platforms) == (8, OFFER.platforms)
    assert offered.toolchains == {"python": TOOL.fingerprint.decode()}


def changed(**values: Any) -> bytes:
    return canonical_json({**json.loads(OFFER.to_json()), **values})


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b"\xff", changed(schema=2), changed(jobs="many"), changed(platforms=[1])],
)
def test_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        Offered.from_json(data)


@pytest.mark.parametrize(
    ("name", "properties", "resources", "why"),
    [
        ("cpu", {"arch": "x86_64"}, Resources(), ""),
        ("cpu", {"arch": "aarch64"}, Resources(), "arch is 'x86_64', the action is for 'aarch64'"),
        ("cpu", {"device": "Xeon"}, Resources(), "device is 'EPYC'"),
        ("cpu", {"cores": "8"}, Resources(), "cores is '', the action is for '8'"),
        ("cuda", {"arch": "sm_80"}, Resources(), ""),
        ("cuda", {"arch": "sm_90"}, ON_DEVICE, ""),
        ("cuda", {"arch": "sm_80"}, ON_DEVICE, "arch is 'sm_90'"),
        ("cuda", {"device": "H100"}, Resources(timed=True), "device is 'H200'"),
        ("rocm", {"arch": "gfx942"}, Resources(1, "rocm"), "the action is for platform rocm"),
        ("rocm", {"arch": "gfx942"}, Resources(), ""),
    ],
)
def test_what_runs_on_a_device_needs_that_device(
    name: str, properties: dict[str, str], resources: Resources, why: str
) -> None:
    """What only compiles for one does not."""
    action = replace(
        command("a", resources=resources), platform=Platform(name, tuple(properties.items()))
    )

    said = OFFER.refusal(action)

    assert (why in said) if why else said == ""


def test_toolchains_are_compared_by_distribution() -> None:
    offered = Offered.from_json(OFFER.to_json())
    own = {"python": python("2.13.0"), "zig": b"{}"}

    differing, absent = compare_toolchains("pool cpu", offered, own)
    (same,) = compare_toolchains("pool cpu", offered, {"python": TOOL.fingerprint})

    assert (differing.name, differing.state) == ("pool cpu python", State.PROBLEM)
    assert "torch" in differing.found
    assert "2.11.0" in differing.found
    assert "2.13.0" in differing.found
    assert (absent.name, absent.state) == ("pool cpu zig", State.WARNING)
    assert (same.state, same.found) == (State.OK, "the same: python")
