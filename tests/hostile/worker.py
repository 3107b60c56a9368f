"""Plays cases inside a jail: one line in for each (kind and number), one JSON line out."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path

from tests.hostile import jail, templates
from tests.hostile.draw import Draw
from tests.hostile.forkserver import Forkserver
from tests.hostile.ground import Ground
from tests.hostile.kinds import KINDS

HOME = Path("/tmp/templates")


def main(seed: str) -> None:
    """Answer until nobody asks."""
    jail.enter()
    os.environ |= {"HOME": "/tmp/home", "TMPDIR": "/tmp"}
    Path("/tmp/home").mkdir()
    server = Forkserver()
    ground = Ground(server, {os.getpid(), server.process.pid}, HOME)
    ground.full_seconds = templates.make(HOME, server)
    mounts = jail.mounts()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        kind, number = line.split()
        began = time.monotonic()
        ground.calls, ground.findings = 0, []
        try:
            ground.lay(KINDS[kind].template)
            KINDS[kind].play(Draw(f"{seed}/{kind}/{number}"), ground)
        except Exception:  # noqa: BLE001 - a fault of the fuzzer's is told as one
            ground.find("the fuzzer itself failed", traceback.format_exc())
        if (now := jail.mounts()) != mounts:
            ground.find("leftover: mounts", f"{mounts} before, {now} now")
            mounts = now
        said = {
            "calls": ground.calls,
            "seconds": time.monotonic() - began,
            "findings": [asdict(finding) for finding in ground.findings],
        }
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
