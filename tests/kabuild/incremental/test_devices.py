"""A memory of what was judged on devices holds while these are what they were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kabuild.incremental.identity import identity, platform_text
from kabuild.loading import builtin_root, platform_index
from kabuild.loading.request import Request
from tests.testkit.fake_nvidia import FakeNvidia, compile_driver, gpu, make_fake


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def fake(tmp_path: Path, driver: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvidia:
    """A machine with NVIDIA's driver in place of this one."""
    made = make_fake(tmp_path / "machine", driver)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(platform_index, "import_driver", lambda _: made.vendor())
    return made


@pytest.mark.parametrize(
    "changed",
    [{"watts": 500}, {"clock": 1500}, {"mib": 81559}, {"name": "NVIDIA H100"}],
)
def test_a_changed_device_is_another_platform(fake: FakeNvidia, changed: dict[str, object]) -> None:
    fake.has(gpu(0))
    before = platform_text(builtin_root(), "cuda", ())
    fake.has(replace(gpu(0), **changed))  # type: ignore[arg-type]

    assert platform_text(builtin_root(), "cuda", ()) != before


def test_an_equal_device_on_another_number_is_the_same_platform(fake: FakeNvidia) -> None:
    fake.has(gpu(0), gpu(1))

    one, other = (platform_text(builtin_root(), "cuda", (index,)) for index in (0, 1))
    assert one == other


def test_requests_for_other_devices_have_other_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their memories say what is left to do on which."""
    request = Request(("//...",), tmp_path, platform="cuda")
    names = {identity(replace(request, devices=devices), tmp_path) for devices in ((), (0,), (1,))}
    for variable in ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        monkeypatch.setenv(variable, "0")
        names.add(identity(request, tmp_path))

    assert len(names) == 6
