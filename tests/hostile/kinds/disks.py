"""Disks that are full, read-only or out of inodes, at any moment."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.hostile.draw import Draw
from tests.hostile.ground import Ground
from tests.hostile.kinds.kind import Kind
from tests.hostile.oracle import Rules


def play(draw: Draw, ground: Ground) -> None:
    """Build where something is on a disk of which little is left, then where there is room."""
    place = draw.choice(
        (ground.store, ground.store, ground.root / "out", ground.root.parent / "tmp")
    )
    if draw.chance(0.8):
        ground.run(ground.call("clean", "--expunge"))
    kept = ground.root.parent / "kept"
    place.mkdir(exist_ok=True)
    shutil.copytree(place, kept, symlinks=True)
    blocks = sum((f.stat().st_size + 4095) // 4096 for f in kept.rglob("*") if f.is_file())
    inodes = sum(1 for _ in kept.rglob("*"))
    few = draw.chance(0.4)
    room = draw.choice((0, 1, 2, 5, 10, 20, 40, 80, 150))
    limit = f"nr_inodes={inodes + 1 + room}" if few else f"size={4 * (blocks + room + 1)}k"
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"{limit},mode=1777", "none", place], check=True)
    try:
        shutil.copytree(kept, place, symlinks=True, dirs_exist_ok=True)
        if draw.chance(0.15):
            _remount(place, "ro")
        words = draw.choice(
            (
                ("test", "//tasks/..."),
                ("test", "//tasks/..."),
                ("publish", "//tasks/...", "-o", "x.kab"),
            )
        )
        asked = ground.call(*words)
        ended = ground.run(asked)
        ground.expect(
            holds=ended.code in ({3, 36} if words[0] == "test" else {0, 1, 36}),
            what="wrong end on a full disk",
            detail=f"{limit} {ended.text}",
        )
        _judged(ground)
        _remount(place, "rw,size=100m,nr_inodes=100000")
        found = ground.verdicts()
        ground.expect(
            holds=found == ground.truth,
            what="wrong verdicts once there is room",
            detail=f"{limit} {found}",
        )
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def _judged(ground: Ground) -> None:
    """What is judged on a full disk is judged right; the rest is the machine's failure."""
    found = ground.verdicts(rules=Rules())
    found = [] if isinstance(found, str) else found
    truth = {row[0]: row[1] for row in ground.truth}
    wrong = [row for row in found if row[1] not in {truth[row[0]], "INFRA", "SKIPPED"}]
    ground.expect(holds=not wrong, what="wrong verdicts on a full disk", detail=str(wrong))


def _remount(place: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", place], check=True)


KINDS = (Kind("disks", 0.6, play),)
