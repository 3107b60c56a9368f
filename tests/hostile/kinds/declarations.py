"""Files that people write: WORKSPACE.toml, BUILD.toml, lock files, the user's settings, rules."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.hostile.draw import LABELS, Draw
from tests.hostile.ground import Ground
from tests.hostile.kinds.kind import Kind
from tests.hostile.trees import changed, to_toml

_ASKING: Sequence[tuple[str, ...]] = (
    *(("query", "//..."), ("query", "--output=json", "deps(//...)"), ("aquery", "//tasks/...")),
    *(("aquery", "//...", "--json"), ("query", "--output=build", "//..."), ("why", "//tasks/...")),
    *(
        ("info",),
        ("doctor",),
        ("test", "//tasks/...", "--config=quick"),
        ("build", "//...:*.compile"),
    ),
    *(("toolchain", "list"), ("toolchain", "lock"), ("toolchain", "verify"), ("cache", "stats")),
    *(
        ("cache", "gc", "--dry_run"),
        ("validate", "//...", "--samples=1"),
        ("toolchain", "show", "mine"),
    ),
)
_TASKS = ("real/double", "real/twice", "real/rotate")
_WORDS = (
    *(
        "T[n]",
        "T[n, n]",
        "i64[n]",
        "f99[n]",
        "T[]",
        "T[n*n]",
        "T[-n]",
        "T[n//0]",
        "T[9**9**9]",
        "n",
        "1..1",
    ),
    *(
        "0..0",
        "5..1",
        "1..99999999999999999999",
        "-1..2",
        "f32",
        "f16",
        "bf16",
        "e4m3",
        "cpu",
        "cuda",
        "rocm",
    ),
    *(
        "sampled(seed)",
        "double.hip",
        "reference.py",
        "../reference.py",
        "/etc/passwd",
        "twice",
        "twice_f32",
    ),
    *(
        "zig",
        "c++-compiler",
        "x==1.0",
        "https://localhost:1/x.tar.gz",
        "file:///etc/passwd",
        "0" * 64,
    ),
    *(
        "aka",
        "fast_p",
        "expert",
        "none",
        "{cli}/bin/x",
        "{python}",
        "{kernel}",
        "**/*",
        "*",
        "[!",
        "linux-x86_64",
    ),
)


def word(draw: Draw) -> Any:
    """A value that is at home in some declaration."""
    if draw.chance(0.5):
        return draw.value()
    return (
        draw.choice((*_WORDS, *LABELS))
        if draw.chance(0.8)
        else {"n": draw.choice((0, 1, -1, 2**40))}
    )


def damage(draw: Draw, path: Path, *, tree: bool = True) -> None:
    """Change a file as a value, or as bytes."""
    data = path.read_bytes()
    if tree and draw.chance(0.7):
        text = to_toml(changed(draw, tomllib.loads(data.decode()), lambda: word(draw)))
        path.write_bytes(text.encode(errors="surrogateescape"))
    elif draw.chance(0.05):
        path.write_bytes(draw.choice(_MONSTERS)())
    else:
        path.write_bytes(draw.damaged(data))


_MONSTERS: Sequence[Callable[[], bytes]] = (
    lambda: b"a = " + b"[" * 5000 + b"]" * 5000,
    lambda: b"a = " + b"{ a = " * 3000 + b"1" + b"}" * 3000,
    lambda: b".".join([b"a"] * 5000) + b" = 1",
    lambda: b"[" + b".".join([b"a"] * 3000) + b"]",
    lambda: b"[[copied]]\n" * 3000,
    lambda: b"".join(b"[[copied]]\nname = 't%d'\n" % n for n in range(3000)),
    lambda: b"\xff\xfe" + "name = 'x'".encode("utf-16-le"),
    lambda: b"\xef\xbb\xbfname = 'x'\n",
    lambda: b"a = 1" + b"0" * 100_000,
    lambda: b"name = 'x'\r" * 3,
    lambda: b"\0" * 1000,
    lambda: b"x" * (1 << 22),
)


def play_workspace(draw: Draw, ground: Ground) -> None:
    """WORKSPACE.toml."""
    damage(draw, ground.root / "WORKSPACE.toml")
    ground.run(ground.call(*draw.choice(_ASKING)))


def play_user(draw: Draw, ground: Ground) -> None:
    """The user's own settings."""
    path = ground.home / ".config/kabuild/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text('[cache]\nsize = "1G"\n')
    damage(draw, path)
    ground.run(ground.call(*draw.choice(_ASKING)))


def play_build(draw: Draw, ground: Ground) -> None:
    """The BUILD.toml of real tasks, of tools, of agents."""
    file = draw.choice(
        ("tasks/family0/t0", *_TASKS, *_TASKS, "toolchains/mine", "agents", "real/runtime")
    )
    damage(draw, ground.root / file / "BUILD.toml")
    ground.run(ground.call(*draw.choice(_ASKING)))


def play_lock(draw: Draw, ground: Ground) -> None:
    """The lock of toolchains."""
    damage(draw, ground.root / "toolchains/lock.toml")
    asked = draw.choice(
        (("toolchain", "list"), ("toolchain", "verify"), ("toolchain", "lock"), *_ASKING)
    )
    flags = ("--locked",) if asked[0] in {"test", "build", "aquery", "why"} else ()
    ground.run(ground.call(*asked, *flags))


_RULES = (
    "raise SystemExit(0)\n",
    "import os; os._exit(0)\n",
    "1/0\n",
    "def f(): f()\nf()\n",
    "RULE = None\n",
    "RULE = 7\n",
    "from kabuild.rule import Rule\nRULE = Rule(kind='other', doc='', implement=lambda ctx: 0)\n",
    "from kabuild.rule import Rule\nRULE = Rule(kind='copied', doc='', implement=lambda c: 1/0)\n",
    "from kabuild.rule import Rule\nRULE = Rule(kind='copied', doc='x', implement=lambda: None)\n",
    "from kabuild.rule import Rule\nRULE = Rule(kind='copied')\n",
    "import no_such_module\n",
    "from kabuild.rule import *\n",
    "import kabuild.store\n",
    "raise KeyboardInterrupt\n",
    "raise BaseException('x')\n",
    "print('::error::x'); import sys; sys.stderr.write('\\x1b[2J')\n",
    "raise Exception('\\x1b[2J')\n",
    "class X(Exception):\n    def __str__(self): raise ValueError\nraise X\n",
    "import sys; sys.setrecursionlimit(10)\n",
    "\tx = 1\n  y\n",
    "\0",
    "# coding: nonsense\n",
    "# -*- coding: latin-1 -*-\nx = '\xe9'\n",
    "lambda: (yield)\n" * 3,
    "(" * 300 + ")" * 300,
    "x = " + "-" * 30000 + "1",
)


def play_rule(draw: Draw, ground: Ground) -> None:
    """A rule's own code. It is trusted not to be evil, but not to be right."""
    path = ground.root / "rules/copied/rule.py"
    if draw.chance(0.5):
        text = draw.choice(_RULES)
        before = path.read_text() if draw.chance(0.3) else ""
        path.write_text(before + text, encoding="latin-1")
    else:
        path.write_bytes(draw.damaged(path.read_bytes()))
    calm = [asked for asked in _ASKING if asked[0] != "validate"]
    exits = "os._exit" in path.read_text(errors="replace")
    if not exits:
        ground.run(ground.call(*draw.choice(calm)))


KINDS = (
    Kind("workspace", 1.0, play_workspace, "tasks"),
    Kind("build", 3.0, play_build, "tasks"),
    Kind("lock", 1.0, play_lock, "tasks"),
    Kind("user", 0.3, play_user, "tasks"),
    Kind("rule", 1.0, play_rule, "tasks"),
)
