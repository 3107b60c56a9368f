"""Where a case happens: a workspace and a store, fresh each time, and what must stay as it is."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.hostile import jail, oracle
from tests.hostile.call import Call, Ended
from tests.hostile.forkserver import Forkserver

BASE = Path("/tmp/case")
_GRACE = 3.0


def rows(said: Any) -> list[list[Any]]:
    """What matters of what ``--json`` says of gates, in one order."""
    found = [[t["label"], t["verdict"], t["reason"], t.get("speedup")] for t in said["targets"]]
    return sorted(found, key=str)


_READS_ALL = ("toolchain", "verify")
_SECONDS_TO_READ_ALL = 180.0
"""It reads every file of the installed toolchains, and says so: gigabytes, on a busy machine."""


@dataclass(frozen=True)
class Finding:
    """One thing that must not be.

    ``what`` is the same for the same fault, so that findings can be counted by it.
    """

    what: str
    call: str
    detail: str


@dataclass(eq=False)
class Ground:
    """One case's place. All of its paths are the same for every case.

    Attributes:
        home, root, store: the user's home, the workspace, its store.
        truth: what ``verdicts`` has to say.
        full_seconds: how long a build takes from an empty store.
        outside: files that nothing may touch, with their state in ``before``.
        calls: how many times the program was called.
    """

    server: Forkserver
    known: set[int]
    templates: Path
    findings: list[Finding] = field(default_factory=list)
    calls: int = 0
    home: Path = BASE / "home"
    root: Path = BASE / "ws"
    store: Path = BASE / "store"
    outside: Path = BASE / "outside"
    before: Mapping[str, str] = field(default_factory=dict)
    truth: Any = None
    full_seconds: float = 1.0

    def lay(self, template: str) -> None:
        """Put a template in place, after whatever was there before."""
        _remove(BASE)
        shutil.copytree(self.templates / template, BASE, symlinks=True)
        for name in ("home", "outside", "tmp", "store"):
            (BASE / name).mkdir(exist_ok=True)
        (BASE / "tmp").chmod(0o1777)
        os.mkfifo(self.root / "fifo")
        (self.root / "loop").symlink_to("loop")
        (self.root / "dangling").symlink_to("nowhere")
        (self.root / "device").symlink_to("/dev/zero")
        (self.outside / "precious").write_text("precious\n")
        (self.outside / "link").symlink_to("precious")
        os.mkfifo(self.outside / "pipe")
        with contextlib.suppress(PermissionError):
            os.mknod(self.outside / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        self.findings = []
        self.before = _states(self.outside)
        self.truth = json.loads((BASE / "truth.json").read_text())

    def environment(self, **changes: str) -> dict[str, str]:
        """What a sane shell gives."""
        return {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "KABUILD_CACHE": str(self.store),
            "TMPDIR": str(BASE / "tmp"),
            "NO_COLOR": "1",
            **changes,
        }

    def call(self, *argv: str, **how: Any) -> Call:
        """A call from the workspace's root."""
        how = {"cwd": str(self.root), "env": self.environment(), **how}
        if argv[:2] == _READS_ALL:
            how.setdefault("seconds", _SECONDS_TO_READ_ALL)
        return Call(tuple(argv), **how)

    def run(self, call: Call, rules: oracle.Rules = oracle.Rules()) -> Ended:  # noqa: B008
        """Make a call, and hold it to what holds for all of them."""
        self.calls += 1
        argv = tuple(item.replace("\0", "") for item in call.argv)
        env = {
            key.replace("\0", "").replace("=", "") or "x": value.replace("\0", "")
            for key, value in call.env.items()
        }
        ended = self.server.run(replace(call, argv=argv, env=env))
        for what, detail in oracle.faults(call, ended, rules):
            self.find(what, detail, call)
        self._leftovers(call)
        return ended

    def find(self, what: str, detail: str = "", call: Call | None = None) -> None:
        """Note a finding."""
        made = ""
        if call:
            made = json.dumps({k: v for k, v in call.message().items() if k != "env"})
            changed = {k: v for k, v in call.env.items() if self.environment().get(k) != v}
            made += f" env+={changed}" if changed else ""
        self.findings.append(Finding(what, made[:2000], detail[:3000]))

    def expect(self, *, holds: bool, what: str, detail: str = "") -> None:
        """Note a finding unless something holds."""
        if not holds:
            self.find(what, detail)

    def verdicts(self, *flags: str, rules: oracle.Rules = oracle.Rules()) -> Any:  # noqa: B008
        """What ``test --json`` says of every gate; all that was printed where it gave no answer."""
        ended = self.run(self.call("test", "//tasks/...", "--json", *flags), rules)
        try:
            said = json.loads(ended.out)
        except ValueError:
            return ended.text
        return rows(said)

    def _leftovers(self, call: Call) -> None:
        deadline = time.monotonic() + _GRACE
        while left := jail.others(self.known):
            jail.reap()
            if time.monotonic() > deadline:
                names = sorted(set(left.values()))
                self.find("leftover: processes", str(names), call)
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, 9)
                break
            time.sleep(0.005)
        if _states(self.outside) != self.before:
            self.find("touched a file outside", str(_states(self.outside)), call)
            self.before = _states(self.outside)
        if not jail.devices_are_whole():
            self.find("replaced a device", str(os.listdir("/dev")), call)  # noqa: PTH208
            jail.make_devices()

    rows = staticmethod(rows)

    def check_store(self) -> None:
        """Nothing temporary is left behind the last call."""
        left = [str(p) for p in (self.store / "tmp").glob("*")] + os.listdir(BASE / "tmp")  # noqa: PTH208
        self.expect(holds=not left, what="leftover: temporary files", detail=str(left))


def _states(directory: Path) -> dict[str, str]:
    found = {}
    for path in sorted(directory.rglob("*")):
        status = path.lstat()
        content = ""
        if stat.S_ISREG(status.st_mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[path.name] = f"{status.st_mode:o} {content}"
    return found


def _remove(directory: Path) -> None:
    """Also what nobody may read or enter."""

    def open_up(function: Any, path: str, _: Any) -> None:
        parent = Path(path).parent
        parent.chmod(0o700)
        with contextlib.suppress(OSError):
            Path(path).chmod(0o700)
        with contextlib.suppress(FileNotFoundError):
            function(path)

    if directory.exists():
        shutil.rmtree(directory, onerror=open_up)
