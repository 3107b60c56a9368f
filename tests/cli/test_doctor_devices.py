"""What ``kabuild doctor`` says of accelerators, on a machine whatever it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.cli.doctor_devices import UNTRIED, find_devices, judging_pytorch
from kabuild.execution.devices import vendor_of


def test_what_never_ran_on_hardware_is_said(tmp_path: Path) -> None:
    found = list(find_devices(tmp_path))

    (said,) = [finding for finding in found if finding.name == "never run"]
    assert said.found == UNTRIED
    assert any(finding.name == "HIP runtime" for finding in found)


@pytest.mark.skipif(bool(vendor_of("rocm").probe().found), reason="AMD's devices are here")
def test_without_a_device_it_says_why_and_what_works(tmp_path: Path) -> None:
    (said,) = [finding for finding in find_devices(tmp_path) if finding.name == "AMD GPU"]

    assert said.found == "none: /dev/kfd is missing: no amdgpu driver"
    assert "--platform=rocm:gfx942" in said.advice


@pytest.mark.parametrize("version", ["2.13.0+cpu", "2.13.0+cu130", "2.13.0"])
def test_a_pytorch_that_cannot_judge_on_amd_is_named(version: str) -> None:
    (said,) = judging_pytorch(version)

    assert said.found.startswith(f"{version}: not built for AMD's devices")


def test_a_pytorch_for_rocm_is_not_mentioned() -> None:
    assert list(judging_pytorch("2.13.0+rocm7.1")) == []
