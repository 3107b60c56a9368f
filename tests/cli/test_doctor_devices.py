"""What ``kabuild doctor`` says of accelerators, on a machine whatever it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.cli.doctor_devices import find_devices, judging_pytorch
from kabuild.loading.platform_index import PlatformIndex
from kabuild.survey import probe

PLATFORMS = PlatformIndex.of(None)


def test_what_never_ran_on_hardware_is_said(tmp_path: Path) -> None:
    found = list(find_devices(PLATFORMS, tmp_path))

    (said,) = [finding for finding in found if finding.name == "platform rocm"]
    assert said.found == PLATFORMS.spec("rocm").untried
    assert any(finding.name == "HIP runtime" for finding in found)


@pytest.mark.skipif(bool(probe(PLATFORMS, "rocm").found), reason="AMD's devices are here")
def test_without_a_device_it_says_why_and_what_works(tmp_path: Path) -> None:
    found = find_devices(PLATFORMS, tmp_path)
    (said,) = [finding for finding in found if finding.name == "AMD GPU"]

    assert said.found == "none: /dev/kfd is missing: the amdgpu driver is not loaded"
    assert "--platform=rocm:gfx942" in said.advice


@pytest.mark.parametrize(
    ("version", "serves"),
    [
        ("2.13.0", {"cuda"}),  # PyPI's
        ("2.13.0+cu130", {"cuda"}),
        ("2.13.0+rocm7.1", {"rocm"}),
        ("2.13.0+cpu", set()),
        ("", {"cuda", "rocm"}),  # there is none, which is a finding of its own
    ],
)
@pytest.mark.parametrize(("platform", "name"), [("cuda", "CUDA"), ("rocm", "ROCm")])
def test_a_pytorch_that_cannot_judge_on_a_device_is_named(
    platform: str, name: str, version: str, serves: set[str]
) -> None:
    said = [finding.found for finding in judging_pytorch(PLATFORMS.spec(platform), version)]

    assert bool(said) == (platform not in serves)
    assert all(text.startswith(f"{version}: not built for {name}, ") for text in said)
