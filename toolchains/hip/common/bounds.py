"""Limits the resources of a compiler for one source.

A source can make a compiler run forever. That is the source's fault, so the compiler is ended here,
before the sandbox ends everything without a known cause.
"""

from __future__ import annotations

import math
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from faults import SourceFault, ToolDied

_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True)
class Bounds:
    """Limits of each tool: seconds of processor time, bytes of address space, bytes of a file."""

    cpu_seconds: int = 60
    memory_bytes: int = 3 << 30
    file_bytes: int = 128 << 20

    @contextmanager
    def around(self, source: Path) -> Iterator[None]:
        """Tools that are started in this context have these bounds; dying of them is the source's
        fault.

        To be entered by one thread at a time: the bounds are this process's while it lasts, and its
        own processor time so far is added. Raises ``SourceFault``; and ``ToolDied`` if something
        else has ended the tool.
        """
        used = math.ceil(time.process_time())
        wanted = {
            resource.RLIMIT_CPU: used + self.cpu_seconds,
            resource.RLIMIT_AS: self.memory_bytes,
            resource.RLIMIT_FSIZE: self.file_bytes,
        }
        before = {kind: resource.getrlimit(kind) for kind in wanted}
        for kind, most in wanted.items():
            soft, hard = before[kind]
            known = [limit for limit in (soft, most) if limit != resource.RLIM_INFINITY]
            resource.setrlimit(kind, (min(known), hard))
        try:
            yield
        except ToolDied as death:
            if death.signal in _FROM_OUTSIDE:
                raise
            raise SourceFault(f"{source}:1:1: error: {self._why(death.signal)}") from None
        finally:
            for kind, limits in before.items():
                resource.setrlimit(kind, limits)

    def _why(self, number: int) -> str:
        if number == signal.SIGXCPU:
            return f"the compiler has not ended after {self.cpu_seconds} s of processor time"
        if number == signal.SIGXFSZ:
            return f"the compiler makes a file of more than {self.file_bytes >> 20} MiB of it"
        most = f"{self.memory_bytes >> 20} MiB"
        return f"the compiler died (signal {number}): it needed more than {most}, or crashed"


FOR_HOSTS = Bounds()
FOR_DEVICES = Bounds(cpu_seconds=120)
"""Compilers for GPUs unroll, and try more; there are more of them for one source, too."""
