"""What a runner sees of a device, besides its files."""

from __future__ import annotations

from pathlib import Path

import pytest
from base.device_platform import device_platform
from runners import confinement


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree like ``/sys`` with one AMD device."""
    card = tmp_path / "devices/pci0/card"
    (card / "drm/renderD128").mkdir(parents=True)
    (card / "drm/renderD128/device").symlink_to(card)
    for name in ("class/kfd", "class/drm"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "class/drm/renderD128").symlink_to(card / "drm/renderD128")
    monkeypatch.setattr(confinement, "_SYS", tmp_path)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    return tmp_path


def seen(platform: str) -> list[str]:
    binds = list(confinement.device_binds(device_platform(platform)))
    assert all(bind.source == bind.target for bind in binds)
    return [bind.source for bind in binds if not bind.source.startswith("/dev/")]


def test_amds_runtime_finds_the_kernels_description_of_devices(system: Path) -> None:
    wanted = ("class/kfd", "class/drm", "devices/pci0/card")

    assert sorted(seen("rocm")) == sorted(str(system / path) for path in wanted)


def test_nvidias_runtime_needs_none(system: Path) -> None:
    assert seen("cuda") == []


def test_a_driver_elsewhere_is_found_where_the_loader_looks(
    system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = system / "driver"
    driver.mkdir()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{driver}:/usr/lib:{system}/missing:")

    assert seen("cuda") == [str(driver)]
