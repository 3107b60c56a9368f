"""What surrounds the program: variables, streams, limits, directories, other files."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from tests.hostile.call import Stream
from tests.hostile.draw import PATHS, Draw
from tests.hostile.ground import Ground
from tests.hostile.kinds.kind import Kind
from tests.hostile.oracle import Rules

_VARIABLES = (
    *(
        "HOME",
        "TERM",
        "LANG",
        "LC_ALL",
        "PATH",
        "TMPDIR",
        "KABUILD_CACHE",
        "KABUILD_CACHE_SIZE",
        "COLUMNS",
    ),
    *(
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "NO_COLOR",
        "FORCE_COLOR",
        "TZ",
        "PWD",
        "SHELL",
        "USER",
        "CI",
    ),
    *(
        "GITHUB_ACTIONS",
        "GITHUB_STEP_SUMMARY",
        "KABUILD_DEVICE",
        "_KABUILD_COMPLETE",
        "HTTPS_PROXY",
        "COMP_WORDS",
    ),
    *(
        "PIP_INDEX_URL",
        "PIP_CONFIG_FILE",
        "CUDA_VISIBLE_DEVICES",
        "ANTHROPIC_API_KEY",
        "COMP_CWORD",
        "TMP",
    ),
)
_VALUES = (
    *(
        "",
        "0",
        "1",
        "C",
        "POSIX",
        "xx_YY.UTF-8",
        "dumb",
        "xterm",
        "bash_complete",
        "zsh_source",
        "10",
        "-5",
        "x:y",
    ),
    *(
        "/nonexistent",
        "/proc/self/fd",
        "relative/path",
        "~",
        "~nobody",
        "~x/y",
        "/dev/null",
        "/dev/full/x",
    ),
    *(
        "/etc/passwd",
        "\udcff\udcfe",
        "20G",
        "1e400G",
        "nan",
        "9" * 400,
        "http://[",
        "/tmp/case/ws/loop",
    ),
    *(
        "/tmp/case/ws/fifo",
        "/tmp/case/ws/dangling",
        "a" * 5000,
        "\x1b[2J",
        "\uff58",
        "/",
        "//",
        ".",
        "/proc",
        "/sys/x",
    ),
)
_CALLS: tuple[tuple[str, ...], ...] = (
    *(
        ("test", "//tasks/..."),
        ("test", "//tasks/...", "--json"),
        ("build", "//tasks/family0/t0:t0.compile"),
    ),
    *(
        ("query", "//..."),
        ("cache", "stats"),
        ("cache", "gc"),
        ("info",),
        ("doctor",),
        ("version",),
        ("--help",),
    ),
    *(
        ("toolchain", "list"),
        ("clean",),
        ("why", "//tasks/..."),
        ("report", "//tasks/...", "--format=md"),
    ),
    *(
        ("test", "--help"),
        ("tset",),
        ("test", "//nowhere"),
        ("cache", "verify"),
        ("clean", "--expunge"),
    ),
)


def play_environment(draw: Draw, ground: Ground) -> None:
    """Variables of the environment."""
    env = ground.environment()
    for name in draw.some(_VARIABLES, 3) or ["HOME"]:
        if draw.chance(0.25):
            env.pop(name, None)
        else:
            env[name] = draw.choice(_VALUES) if draw.chance(0.8) else draw.text()
    ground.run(ground.call(*draw.choice(_CALLS), env=env), _quiet(env))


def _quiet(env: dict[str, str]) -> Rules:
    return Rules(silent="_KABUILD_COMPLETE" in env or "FORCE_COLOR" in env)


def play_streams(draw: Draw, ground: Ground) -> None:
    """Output that nobody takes."""
    kinds: tuple[Stream, ...] = ("kept", "closed", "full", "broken")
    out, err = draw.choice(kinds), draw.choice(kinds)
    call = ground.call(*draw.choice(_CALLS), out=out, err=err)
    ground.run(call, Rules(silent=True))
    found = ground.verdicts()
    ground.expect(holds=found == ground.truth, what="wrong verdicts afterwards", detail=f"{found}")


def play_limits(draw: Draw, ground: Ground) -> None:
    """``ulimit``: what the machine refuses is its own failure, and is not remembered."""
    number, values = draw.choice(
        (
            (resource.RLIMIT_FSIZE, (0, 1, 100, 4096, 1 << 20)),
            (resource.RLIMIT_NOFILE, (3, 4, 8, 12, 16, 24, 40)),
            (resource.RLIMIT_AS, (1 << 20, 100 << 20, 300 << 20, 600 << 20)),
            (resource.RLIMIT_DATA, (1 << 20, 100 << 20)),
            (resource.RLIMIT_STACK, (64 << 10, 1 << 20)),
            (resource.RLIMIT_CORE, (0,)),
            (resource.RLIMIT_NPROC, (0, 1, 5)),
        )
    )
    if draw.chance(0.7):
        ground.run(ground.call("clean", "--expunge"))
    user = 65534 if number == resource.RLIMIT_NPROC else 0
    if user:
        _hand_over(ground, user)
    limits = {number: draw.choice(values)}
    call = ground.call("test", "//tasks/...", limits=limits, user=user)
    ended = ground.run(
        call, Rules(silent=True, killed=25 if number == resource.RLIMIT_FSIZE else 0)
    )
    ground.expect(
        holds=ended.code in {3, 36, -25},
        what="wrong end under a limit",
        detail=f"{limits} {ended.code}\n{ended.text}",
    )
    found = ground.verdicts()
    ground.expect(
        holds=found == ground.truth, what="wrong verdicts after a limit", detail=f"{limits} {found}"
    )


def play_places(draw: Draw, ground: Ground) -> None:
    """Directories that are gone, odd, or not ours; files of all kinds between the declared ones."""
    user = draw.choice((0, 0, 65534))
    for _ in range(draw.choice((0, 1, 3))):
        _plant(
            draw,
            ground.root
            / draw.choice(("tasks", "tasks/family0/t0", "rules/copied/data", "", "rules")),
        )
    if user:
        _hand_over(ground, user)
        if draw.chance(0.7):
            found = [path for path in ground.root.rglob("*") if not path.is_symlink()]
            os.chown(path := draw.choice(found), 0, 0)
            path.chmod(draw.choice((0, 0o100, 0o400)))
    cwd = draw.choice(
        (ground.root, ground.root, ground.root / "tasks", ground.root / "rules", ground.home)
    )
    gone = draw.chance(0.15)
    if gone:
        cwd = ground.root / "gone"
        cwd.mkdir()
        os.chown(cwd, user, user)
    ground.run(ground.call(*draw.choice(_CALLS), cwd=str(cwd), gone=gone, user=user))


def _plant(draw: Draw, folder: Path) -> None:
    name = draw.choice(
        (
            "x",
            "\udcff",
            "a b",
            "x" * 250,
            "\x1b]0;t\x07",
            "-x",
            "WORKSPACE.toml",
            "BUILD.toml",
            "\n::error::",
            "é",
        )
    )
    path = folder / name
    if path.exists() or path.is_symlink():
        return
    match draw.randint(0, 6):
        case 0:
            path.mkdir()
            (path / "BUILD.toml").write_text(
                '[[copied]]\nname = "x"\nkernel = "k"\nreference = "k"\n'
            )
            (path / "k").write_text("k")
        case 1:
            path.symlink_to(draw.choice((".", "..", name, "nowhere", "/dev/zero", "/")))
        case 2:
            os.mkfifo(path)
        case 3:
            path.write_bytes(draw.randbytes(20))
        case 4:
            path.mkdir()
            path.chmod(0)
        case 5:
            path.mkdir()
            (path / "BUILD.toml").symlink_to(
                draw.choice(("BUILD.toml", "/dev/zero", "../../fifo", "/"))
            )
        case _:
            path.mkdir()
            os.mkfifo(path / "BUILD.toml")


def play_outputs(draw: Draw, ground: Ground) -> None:
    """Every flag that names a file to write: devices, pipes and links stay what they are."""
    place = draw.choice(
        (
            *PATHS,
            "../outside/precious/x",
            "out",
            "out/x",
            "tasks",
            "/dev/fd/1",
            "../outside/device",
            ".",
        )
    )
    asked = draw.choice(
        (
            *(
                ("test", "//tasks/...", f"--explain={place}"),
                ("test", "//tasks/...", f"--events={place}"),
            ),
            *(
                ("test", "//tasks/...", f"--summary={place}"),
                ("report", "//tasks/...", "--format=html", "-o", place),
            ),
            *(("publish", "//tasks/...", "-o", place), ("cache", "export", place, "//tasks/...")),
            *(
                ("report", "//tasks/...", "--format=arena", "-o", place),
                ("report", "//tasks/...", "--format=md", "-o", place),
            ),
        )
    )
    ground.run(ground.call(*asked), Rules(binary=asked[:2] == ("cache", "export")))


def _hand_over(ground: Ground, user: int) -> None:
    for folder in (ground.root, ground.store, ground.home, ground.root.parent / "tmp"):
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user, follow_symlinks=False)


KINDS = (
    Kind("environment", 1.5, play_environment),
    Kind("streams", 0.6, play_streams),
    Kind("limits", 0.5, play_limits),
    Kind("places", 1.5, play_places),
    Kind("outputs", 1.0, play_outputs),
)
