"""Reports a device's lack of memory as a machine fault that names the config."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from base.program import Config, MachineFault
from torch import OutOfMemoryError


@contextmanager
def fitting(config: Config) -> Iterator[None]:
    """Raise MachineFault, with the config's name, if the body runs out of device memory."""
    try:
        yield
    except OutOfMemoryError as error:
        said = str(error).partition("\n")[0]
        raise MachineFault(f"DEVICE_MEMORY: {config.name} does not fit: {said}") from error
