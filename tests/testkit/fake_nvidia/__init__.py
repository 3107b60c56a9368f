"""NVIDIA's driver for devices that are not there: a library compiled for tests.

It stands for what cannot be provoked otherwise: several devices, one that is lost, one that
somebody else uses. Real programs load it with ctypes, as they load the real one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.testkit.c_compiler import compile_library
from toolchains.platforms.cuda.cuda_driver import LIBRARY as CUDA
from toolchains.platforms.cuda.devices import Nvidia
from toolchains.platforms.cuda.nvml import LIBRARY as MANAGEMENT

SOURCE = Path(__file__).with_name("driver.c")


@dataclass(frozen=True)
class Gpu:
    """One device of the library."""

    uuid: str
    minor: int = 0
    capability: tuple[int, int] = (9, 0)
    mib: int = 143771
    mode: int = 0
    watts: int = 700
    clock: int = 1980
    name: str = "NVIDIA H200"

    def line(self) -> str:
        """As ``driver.c`` reads it."""
        major, minor = self.capability
        numbers = f"{self.minor} {major} {minor} {self.mib} {self.mode} {self.watts} {self.clock}"
        return f"gpu {self.uuid} {numbers} {self.name}"


def gpu(index: int, **different: object) -> Gpu:
    """One of several that are alike."""
    digits = f"{index:x}" * 12
    like = Gpu(f"GPU-{digits[:8]}-{digits[:4]}-{digits[:4]}-{digits[:4]}-{digits}", index)
    return replace(like, **different)  # type: ignore[arg-type]


@dataclass(frozen=True)
class FakeNvidia:
    """A machine with NVIDIA's driver, in a directory.

    Attributes:
        root: has ``lib`` (the libraries), ``dev`` (device files), ``proc``, and ``state``.
    """

    root: Path
    extra: list[str] = field(default_factory=list)

    @property
    def libraries(self) -> Path:
        """Where the loader has to look."""
        return self.root / "lib"

    @property
    def env(self) -> dict[str, str]:
        """What a process needs to find all this."""
        return {"LD_LIBRARY_PATH": str(self.libraries), "FAKE_NVIDIA": str(self.root / "state")}

    def has(self, *gpus: Gpu, extra: str = "", driver: str = "580.159.04 13000") -> None:
        """The devices from now on; ``extra`` are further lines for ``driver.c``."""
        lines = [f"driver {driver}", *(one.line() for one in gpus), extra]
        new = self.root / "state.new"
        new.write_text("\n".join(lines))
        for one in gpus:
            (self.root / f"dev/nvidia{one.minor}").touch()
        new.rename(self.root / "state")  # at once: others may be reading

    def vendor(self) -> Nvidia:
        """What asks this driver, in a process with ``env``."""
        return Nvidia(self.root / "dev", self.root / "proc")


def compile_driver(directory: Path) -> Path:
    """The library, compiled. Takes about a second."""
    return compile_library(directory / "libfake.so", [str(SOURCE)])


def make_fake(root: Path, driver: Path, *, management: bool = True) -> FakeNvidia:
    """A machine without devices yet; ``management`` says whether it has that library."""
    for name in ("lib", "dev", "proc"):
        (root / name).mkdir(parents=True)
    for name in (CUDA, MANAGEMENT) if management else (CUDA,):
        (root / "lib" / name).symlink_to(driver)
    for name in ("nvidiactl", "nvidia-uvm"):
        (root / "dev" / name).touch()
    fake = FakeNvidia(root)
    fake.has()
    return fake
