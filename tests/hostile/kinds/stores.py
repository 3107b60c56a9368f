"""Damage to every file of the store: the verdicts are the same afterwards, and nothing crashes."""

from __future__ import annotations

import os
from pathlib import Path

from tests.hostile.draw import Draw
from tests.hostile.ground import Ground
from tests.hostile.kinds.kind import Kind

_BEFORE: tuple[tuple[str, ...], ...] = (
    *(
        ("cache", "stats"),
        ("cache", "verify"),
        ("cache", "verify", "--remove"),
        ("cache", "gc", "--max_size=1K"),
    ),
    *(
        ("why", "//tasks/..."),
        ("cache", "export", "x.kcache", "//tasks/..."),
        ("report", "//tasks/...", "--format=md"),
    ),
    *(
        ("publish", "//tasks/...", "-o", "x.kab"),
        ("test", "//tasks/..."),
        ("aquery", "//..."),
        ("cache", "stats", "--json"),
    ),
)


def play(draw: Draw, ground: Ground) -> None:
    """Damage some files, use the store, and judge again."""
    if draw.chance(0.3):
        ground.run(ground.call("test", "//tasks/..."))  # so that there are a memory and an index
    for _ in range(draw.choice((1, 1, 1, 3, 20))):
        files = sorted(
            path for path in ground.store.rglob("*") if path.is_file() and not path.is_symlink()
        )
        if files:
            hurt(draw, ground, draw.choice(files))
    if draw.chance(0.5):
        ground.run(ground.call(*draw.choice(_BEFORE)))
    found = ground.verdicts()
    ground.expect(
        holds=found == ground.truth, what="wrong verdicts of a damaged store", detail=f"{found}"
    )
    again = ground.verdicts()
    ground.expect(holds=again == ground.truth, what="wrong verdicts after that", detail=f"{again}")
    ground.check_store()


def hurt(draw: Draw, ground: Ground, path: Path) -> None:
    """Damage one file: its bytes, or what it is."""
    others = [other for other in path.parent.parent.rglob("*") if other.is_file()]
    data = path.read_bytes()
    match draw.randint(0, 9):
        case 0:
            path.unlink()
        case 1:
            path.write_bytes(b"")
        case 2:
            path.unlink()
            path.mkdir()
        case 3:
            path.unlink()
            path.symlink_to(
                draw.choice(("/dev/zero", path.name, "nowhere", "/etc/passwd", str(ground.outside)))
            )
        case 4:
            path.write_bytes(draw.choice(others).read_bytes())
        case 5:
            path.unlink()
            os.mkfifo(path)
        case 6:
            path.chmod(0)
            stray = path.parent / draw.choice(("x", ".x", "x" * 200, "\udcff"))
            if not os.path.lexists(stray):  # never through a link that an earlier turn has made
                stray.write_bytes(data)
        case _:
            path.write_bytes(draw.damaged(data))


def play_tree(draw: Draw, ground: Ground) -> None:
    """Directories of the store that are something else, or somebody else's."""
    folders = sorted(
        path for path in ground.store.rglob("*") if path.is_dir() and not path.is_symlink()
    )
    path = draw.choice([ground.store, *folders])
    match draw.randint(0, 4):
        case 0:
            path.rename(path.with_name("gone"))
        case 1:
            path.rename(path.with_name("gone"))
            path.write_text("not a directory")
        case 2:
            path.rename(path.with_name("gone"))
            path.symlink_to(draw.choice(("gone", "nowhere", path.name)))
        case 3:
            path.chmod(draw.choice((0, 0o500, 0o300)))
        case _:
            (path / draw.choice(("lock", "x", ".", "tmp"))).mkdir(exist_ok=True)
    user = draw.choice((0, 65534))
    if user:
        for item in (ground.root, *ground.root.rglob("*"), ground.home, ground.root.parent):
            os.chown(item, user, user, follow_symlinks=False)
    ended = ground.run(ground.call("test", "//tasks/...", user=user))
    ground.expect(
        holds=ended.code in {3, 36}, what="wrong end with a damaged store", detail=ended.text
    )
    if ended.code == 3:
        found = ground.verdicts()
        ground.expect(
            holds=found == ground.truth, what="wrong verdicts of a damaged store", detail=f"{found}"
        )


KINDS = (Kind("store", 3.0, play), Kind("storetree", 0.5, play_tree))
