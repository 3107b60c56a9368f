"""The real program on a machine with two GPUs that are not there, and a referee of what runs.

The device files are FIFOs, so that an action in its sandbox can say that it has begun and wait
until it may end: nothing is timed.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace
from tests.testkit.fake_nvidia import FakeNvidia, gpu

SECONDS = 120
"""How long the referee waits for what has to come."""

PROGRAM = """\
import sys
from pathlib import Path
from kabuild.execution.devices import DevicePool
from kabuild.loading import platform_index
from toolchains.platforms.cuda.devices import Nvidia
root = Path(sys.argv.pop(1))
real, nvidia = platform_index.import_driver, Nvidia(root / "dev", root / "proc")
platform_index.import_driver = lambda path: nvidia if path.name == "cuda" else real(path)
DevicePool.__init__.__kwdefaults__["grace"] = 0.2
from kabuild.cli.main import main
sys.exit(main())
"""
"""kabuild, with device files elsewhere than in /dev, and little time for others to leave them."""

RULE = """\
from kabuild.rule import Context, Resources, Rule, attr

PROBE = '''
set -e
node=$(echo {dev}/nvidia[0-9])
echo "$1 $KABUILD_DEVICE $node" > "$node"
read -r word < "{dev}/nvidia-caps/$KABUILD_DEVICE"
echo "$word" > out/done
'''


def implement(ctx: Context) -> None:
    ctx.action(
        "",
        argv=("/bin/sh", "probe.sh", ctx.label.name),
        inputs={"probe.sh": ctx.text(PROBE.format(dev=ctx.attrs["dev"]))},
        outputs=("done",),
        mnemonic="Probe",
        resources=Resources(lease=ctx.platform.name, timed=True),
    )


RULE = Rule(kind="probe", doc="Uses a device.", implement=implement,
            attrs={"dev": attr.string("Where device files lie.", required=True)})
"""


class Fifo:
    """One end of a FIFO that neither side waits for to open."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDWR)

    def hear(self, seconds: float) -> list[str]:
        """The words that were said, or are within so many seconds."""
        ready, _, _ = select.select([self._fd], [], [], seconds)
        return os.read(self._fd, 4096).decode().split() if ready else []

    def say(self, word: str) -> None:
        """Tell whoever listens, now or later."""
        os.write(self._fd, f"{word}\n".encode())

    def close(self) -> None:
        os.close(self._fd)


@dataclass(frozen=True)
class Gpu:
    """One device as the referee has it.

    An action that starts speaks through ``ear``; it ends when ``mouth`` says so.
    """

    uuid: str
    ear: Fifo
    mouth: Fifo

    def release(self) -> None:
        """Let the action that uses it end."""
        self.mouth.say("go")

    def is_idle(self) -> bool:
        """Whether nothing has begun on it that nobody has heard of."""
        return not self.ear.hear(0)


class TwoGpus:
    """A workspace, a machine with two GPUs, and programs at work on them."""

    def __init__(self, workspace: CliWorkspace, fake: FakeNvidia, stack: ExitStack) -> None:
        self.workspace = workspace
        self.fake = fake
        self._stack = stack
        self._running: list[subprocess.Popen[str]] = []
        caps = fake.root / "dev/nvidia-caps"
        caps.mkdir()
        self.gpus = [self._gpu(index) for index in (0, 1)]
        self.has()
        workspace.write("rules/probe/rule.py", RULE)

    def _gpu(self, index: int) -> Gpu:
        uuid = gpu(index).uuid
        dev = self.fake.root / "dev"
        made = Gpu(uuid, Fifo(dev / f"nvidia{index}"), Fifo(dev / "nvidia-caps" / uuid))
        self._stack.callback(made.ear.close)
        self._stack.callback(made.mouth.close)
        return made

    def has(self, extra: str = "") -> None:
        """Both devices, and ``extra`` facts about them (see ``driver.c``)."""
        self.fake.has(gpu(0), gpu(1), extra=extra)

    def declare(self, *names: str) -> None:
        """One package whose targets each need a device."""
        dev = self.fake.root / "dev"
        text = "".join(f'[[probe]]\nname = "{name}"\ndev = "{dev}"\n' for name in names)
        self.workspace.write("t/BUILD.toml", text)

    def begun(self, gpu: Gpu) -> list[str]:
        """What begins on a device: the action's name, KABUILD_DEVICE, and its device file."""
        for _ in range(SECONDS):
            if words := gpu.ear.hear(1):
                return words
            if all(process.poll() is not None for process in self._running):
                break
        pytest.fail(f"nothing began: {[ended(process) for process in self._running]}")

    @contextmanager
    def kabuild(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """The program; it is ended where the test does not wait for its end."""
        env = {**self.workspace.environment(), **self.fake.env}
        env.pop("CUDA_VISIBLE_DEVICES", None)
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(self.fake.root), *arguments],
            cwd=self.workspace.root,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._running.append(process)
        try:
            yield process
        finally:
            self._running.remove(process)
            process.kill()
            process.wait()


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Its exit code and all that it printed and nobody has read, once it has ended."""
    output, _ = process.communicate(timeout=SECONDS)
    return process.returncode, output
