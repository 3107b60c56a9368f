"""What judges know of a platform is what its directory says, and nothing else names one."""

from __future__ import annotations

import ast
import ctypes
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from ahead_platform import ahead_platform
from base.device_platform import DevicePlatform, DriverLibrary, device_platform
from base.program import MachineFault, Program, RunnerPolicy
from gpu import driver as gpu_driver
from perf import device_state
from pyrunner.faults import code_of
from runners import confinement, driver_front
from runners.protocol import FaultCode

from kabuild.loading.platform_index import PlatformIndex
from tests.testkit.cli import REPOSITORY

SHIPPED = [name for name in PlatformIndex.of(None).names() if name != "cpu"]
TOY = DevicePlatform(
    name="toy",
    maker="Toymaker",
    driver=DriverLibrary(
        ("libtoy.so.2", "libtoy.so.1"), "toy", {"cuInit": "start_toys"}, brought_by="toys"
    ),
    torch_device="cpu",
    torch_version="toy",
    out_of_memory=("the board is full",),
    device_files=("toy*",),
    triton_utilities=("toys", "Utilities"),
    variables=("TOY_BOARDS",),
    caches={"TOY_CACHE": "toys"},
)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """A program of a platform that no file of kabuild names."""
    monkeypatch.setitem(sys.modules, "toy_device", SimpleNamespace(PLATFORM=TOY))
    monkeypatch.setattr(gpu_driver, "_CHOSEN", [])
    device_platform.cache_clear()
    yield Program("python", "/w/kernel.py", "k", (), None, "toy", launch_filter="/w/filter.so")
    device_platform.cache_clear()


@pytest.mark.parametrize("name", SHIPPED)
def test_the_directory_of_a_platform_has_what_judges_agents_and_triton_ask(name: str) -> None:
    directory = REPOSITORY / "toolchains/platforms" / name

    assert device_platform(name).name == name
    assert (directory / "sheet.md").read_text().startswith("#")
    platform = ahead_platform(name)
    example = PlatformIndex.of(None).spec(name).example
    assert platform.device(example).arch == example
    assert set(platform.architectures) <= set(PlatformIndex.of(None).spec(name).architectures)


def test_a_platform_without_its_file_is_the_machines_failure() -> None:
    with pytest.raises(MachineFault, match=r"no nowhere_device\.py for its platform 'nowhere'"):
        device_platform("nowhere")


def test_a_runner_sees_and_inherits_what_its_platform_says(
    toy: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TOY_BOARDS", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "KABUILD_DEVICE"):
        monkeypatch.setenv(name, "1")
    variables = confinement.environment(toy, RunnerPolicy(cache="/tmp/kept"))

    assert variables["TOY_BOARDS"] == "1"
    assert variables["TOY_CACHE"] == "/cache/toys"
    assert not [name for name in variables if re.match("CUDA|ROCR|HIP|KABUILD_DEVICE", name)]
    monkeypatch.setattr(Path, "glob", lambda self, pattern: [self / pattern.replace("*", "0")])
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    binds = list(confinement.device_binds(TOY))
    assert [(bind.target, bind.writable) for bind in binds] == [("/dev/toy0", True)]


@pytest.mark.parametrize(("abi", "brought_by"), [("python", "toys"), ("hip", "")])
def test_the_launch_filter_stands_before_the_driver_of_its_platform(
    toy: Program, monkeypatch: pytest.MonkeyPatch, abi: str, brought_by: str
) -> None:
    asked = []

    def found(names: tuple[str, ...], module: str) -> tuple[str, str]:
        asked.append((names, module))
        raise FileNotFoundError

    monkeypatch.setattr(driver_front, "_found_by_loader", found)
    with pytest.raises(FileNotFoundError):
        driver_front.front_of(Program(**{**vars(toy), "abi": abi}))

    assert asked == [(("libtoy.so.2", "libtoy.so.1"), brought_by)]


def test_a_driver_is_called_by_its_own_names(toy: Program) -> None:
    library = SimpleNamespace(start_toys=lambda flags: flags, toyMemRelease=lambda handle: 0)
    loaded = gpu_driver.Driver(library, TOY.driver)  # type: ignore[arg-type]
    loaded.call("cuMemRelease", 7)
    with pytest.raises(gpu_driver.DriverError, match="start_toys returned error 3"):
        loaded.call("cuInit", 3)

    assert gpu_driver.choose(toy.platform) is gpu_driver.chosen()
    assert gpu_driver.accelerator().__name__ == "torch.cpu"
    with pytest.raises(gpu_driver.NoDevice, match=r"no toy device .*: libtoy\.so\.2 is not inst"):
        gpu_driver.open_driver(TOY)


@pytest.mark.parametrize(
    ("said", "platform", "code"),
    [
        ("the board is full", "toy", (FaultCode.MEMORY,)),
        ("CUDA out of memory. Tried to allocate", "cuda", (FaultCode.MEMORY,)),
        ("HIP out of memory. Tried to allocate", "rocm", (FaultCode.MEMORY,)),
        ("CUDA out of memory. Tried to allocate", "toy", (FaultCode.EXCEPTION,)),
        ("an illegal memory access was encountered", "cuda", (FaultCode.LAUNCH, 700)),
    ],
)
def test_memory_that_ran_out_is_known_by_the_platforms_words(
    toy: Program, said: str, platform: str, code: tuple[int, ...]
) -> None:
    assert code_of(RuntimeError(said), device_platform(platform).out_of_memory) == code


class Management:
    """Stands in for NVIDIA's management library: knows one address, and not the temperature."""

    def __init__(self, bus: bytes) -> None:
        self._bus = bus

    def nvmlInit_v2(self) -> int:
        return 0

    def nvmlDeviceGetHandleByPciBusId_v2(self, bus: bytes, handle: Any) -> int:
        return 0 if bus == self._bus else 6

    def __getattr__(self, name: str) -> Any:
        def answer(_: object, *arguments: Any) -> int:
            *asked, value = arguments
            value._obj.value = len(name) + sum(asked)
            return 3 if name == "nvmlDeviceGetTemperature" else 0

        return answer


@pytest.mark.parametrize("bus", [b"0000:0A:00.0", b"0000:0B:00.0"])
def test_the_state_of_nvidias_devices_is_what_the_management_library_says(
    monkeypatch: pytest.MonkeyPatch, bus: bytes
) -> None:
    platform = device_platform("cuda")
    module = sys.modules["cuda_device"]
    module._handle.cache_clear()
    monkeypatch.setattr(module, "ctypes", SimpleNamespace(**vars(ctypes)))
    module.ctypes.CDLL = lambda _: Management(b"0000:0A:00.0")
    assert platform.state is not None
    found = platform.state(bus)
    module._handle.cache_clear()

    clock = len("nvmlDeviceGetClockInfo")
    known = {
        "sm_mhz": clock + 1,
        "memory_mhz": clock + 2,
        "milliwatts": len("nvmlDeviceGetPowerUsage"),
        "slowed": len("nvmlDeviceGetCurrentClocksThrottleReasons"),
    }
    assert found == (known if bus == b"0000:0A:00.0" else {})


@pytest.mark.parametrize(("tells", "found"), [(True, {"mhz": 3}), (False, {})])
def test_the_state_of_a_device_is_asked_of_its_platform(
    toy: Program, monkeypatch: pytest.MonkeyPatch, tells: bool, found: dict[str, int]
) -> None:
    asked: list[str] = []

    def call(function: str, place: Any, *_: object) -> None:
        asked.append(function)
        place.value = b"bus"

    told = replace(TOY, state=lambda bus: {"mhz": len(bus)}) if tells else TOY
    monkeypatch.setattr(gpu_driver, "_CHOSEN", [told])
    monkeypatch.setattr(device_state, "driver", lambda: SimpleNamespace(call=call))
    device_state._bus.cache_clear()

    assert device_state.reading() == found
    assert asked == (["cuDeviceGetPCIBusId"] if tells else [])
    device_state._bus.cache_clear()


@pytest.mark.parametrize("name", SHIPPED)
def test_pytorch_computes_on_the_devices_of_both_vendors_by_one_module(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_driver, "_CHOSEN", [device_platform(name)])

    assert gpu_driver.accelerator() is torch.cuda


NAMES = re.compile(
    r"(?<![a-z])(cuda|rocm|nvidia|amdgpu|amd(?![a-z0-9])|sm_\d|gfx\d)", re.IGNORECASE
)
OF_OTHERS = re.compile(
    r"""__cuda_array_interface__ | cuda_stream | CUDAGraph | [\w-]*cudagraph\w*  # PyTorch's
    | triton\.language\.extra\.cuda[\w.]*                                       # Triton's
    | /opt/rocm | nvidia-nvvm== | nvidia/cu13                                   # examples
    | options\ nvidia\ NVreg_\w+ | nvidia-counters\.conf                        # a driver's
    """,
    re.VERBOSE,
)
EXEMPT = (
    *(f"rules/hip_{name}/" for name in SHIPPED),
    "rules/imports/",  # tasks of others are written for one device
    "rules/harness/tools/triton_cpu/language.py",  # names of Triton's packages
)


def words(file: Path) -> Iterator[str]:
    """The names and texts of a module's code, without its docstrings and comments."""
    text = file.read_text()
    if not NAMES.search(text):
        return
    tree = ast.parse(text)
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def test_no_code_of_kabuild_names_a_platform() -> None:
    """What is particular to one is in its directory, and in the rule that compiles HIP for it."""
    files = (file for part in ("kabuild", "rules") for file in (REPOSITORY / part).rglob("*.py"))
    named = {
        f"{file.relative_to(REPOSITORY)}: {word}"
        for file in files
        if not str(file.relative_to(REPOSITORY)).startswith(EXEMPT)
        for word in words(file)
        if NAMES.search(OF_OTHERS.sub("", word))
    }

    assert named == set()


def test_the_search_for_names_finds_one(tmp_path: Path) -> None:
    file = tmp_path / "table.py"
    file.write_text('"""Of cuda."""\nTABLE = {"cuda": 1}\n')

    assert [word for word in words(file) if NAMES.search(word)] == ["cuda"]
