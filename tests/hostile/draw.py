"""Seeded choices, and the values that programs trip over."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, TypeVar

T = TypeVar("T")

ESCAPES = (
    "\x1b]0;owned\x07",
    "\x1b[2J\x1b[H",
    "\u202egnp.exe",
    "\x9b31m",
    "\u2066x\u2069",
    "\x08\x08",
)
COMMANDS = (
    "::error::forged",
    "::set-output name=a::b",
    "##vso[task.complete]",
    "::stop-commands::x",
)
PATHS = (
    *("/", "/etc/passwd", "/dev/null", "/dev/zero", "/dev/full", "/dev/stdout", "/proc/self/mem"),
    *("..", "../../..", ".", "-", "~", "", "no/such/file", "out", "WORKSPACE.toml", "x" * 300),
    *(
        "fifo",
        "loop",
        "dangling",
        "device",
        "deep/" * 200,
        "\udcff\udcfe",
        "a b",
        "//a",
        "/dev/tty",
    ),
)
"""Ground has ``fifo``, ``loop``, ``dangling`` and ``device`` beside WORKSPACE.toml."""
LABELS = (
    *("//...", "//tasks/...", "//tasks/family0/t0", "//tasks/family0/t0:t0.perf", ":all", "//:all"),
    *(
        "//tasks/family0:all",
        "//...:*.compile",
        "-//...",
        "//tasks/family0/t0:t0.perf#2",
        "//",
        "@a//b",
    ),
    *(
        "//tasks/family0/t0#0",
        "//tasks//family0",
        "//tasks/../tasks/...",
        "//x:y:z",
        "tasks/family0/t1",
    ),
    *(
        "//...:...",
        "...",
        "-...",
        "//tasks/family0/t0:",
        "//tasks/family0/t0:t0.",
        "//out/...",
        "//.git",
    ),
    *(
        "//tasks/family0/t0:t0#99999999999999999999",
        "//toolchains/...",
        "//rules/copied",
        "*",
        "//*",
    ),
)
NUMBERS = (
    *(
        "0",
        "-1",
        "1",
        "2",
        "00",
        "99999999999",
        "1e9",
        "nan",
        "inf",
        "-0",
        "0x10",
        "\uff11\uff12",
        "1_0",
        "",
    ),
    *(
        "9" * 5000,
        "2147483648",
        "18446744073709551616",
        "1.5",
        "٣",
        "+1",
        " 1 ",
        "1G",
        "0.1K",
        "-5M",
    ),
)


class Draw(random.Random):
    """Random choices that one seed gives again."""

    def chance(self, share: float) -> bool:
        """True in that share of cases."""
        return self.random() < share

    def some(self, items: Sequence[T], most: int = 3) -> list[T]:
        """Between none and ``most`` of ``items``, with repeats."""
        return [self.choice(items) for _ in range(self.randint(0, most))]

    def text(self) -> str:
        """A text that somebody may be foolish or evil enough to write."""
        kinds: Sequence[Callable[[], str]] = (
            lambda: self.choice(PATHS),
            lambda: self.choice(LABELS),
            lambda: self.choice(NUMBERS),
            lambda: self.choice(ESCAPES) + "x",
            lambda: f"x\n{self.choice(COMMANDS)}\n",
            lambda: self.choice(
                ("", " ", "\n", "\t", "\0", "a\0b", "%s%n", "{}", "{0.__class__}", "${x}")
            ),
            lambda: "".join(chr(self.randint(32, 126)) for _ in range(self.randint(1, 12))),
            lambda: "".join(chr(self.randint(0x80, 0xD7FF)) for _ in range(self.randint(1, 4))),
            lambda: "".join(self.choice("()+-^,\"' .:/*#@=") for _ in range(self.randint(1, 40))),
            lambda: self.choice("a([{\"'\\/.,-") * self.choice((10, 300, 5000)),
            lambda: self.choice(("(a+)+$", "(?P<x>", "[", "(?i", "\\", "*", "a{1,99999}", "(((((")),
        )
        return self.choice(kinds)()

    def value(self, depth: int = 0) -> Any:
        """Any value that TOML can say."""
        kinds: list[Callable[[], Any]] = [
            self.text,
            lambda: self.choice((0, 1, -1, 2**31, 2**63 - 1, -(2**63), 10**30, 7)),
            lambda: self.choice((0.0, -0.0, math.nan, math.inf, -math.inf, 1e308, 5e-324, 0.5)),
            lambda: self.chance(0.5),
            lambda: date(1979, 5, 27),
        ]
        if depth < 3:
            kinds += [
                lambda: [self.value(depth + 1) for _ in range(self.randint(0, 3))],
                lambda: {self.text(): self.value(depth + 1) for _ in range(self.randint(0, 3))},
            ]
        return self.choice(kinds)()

    def damaged(self, data: bytes) -> bytes:
        """Bytes with some of what happens to bytes."""
        found = bytearray(data)
        for _ in range(self.choice((1, 1, 1, 3, 20))):
            at = self.randint(0, len(found))
            match self.randint(0, 8):
                case 0 if found:
                    found[at % len(found)] ^= 1 << self.randint(0, 7)
                case 1:
                    del found[at:]
                case 2:
                    found[at:at] = self.randbytes(self.randint(1, 9))
                case 3:
                    del found[at : at + self.randint(1, 40)]
                case 4:
                    found += self.randbytes(self.randint(1, 40))
                case 5 if found:
                    found[at % len(found)] = self.choice((0, 9, 10, 13, 27, 34, 39, 92, 127, 255))
                case 6:
                    end = at + self.randint(1, 60)
                    found[at:at] = found[at:end] * self.choice((1, 2, 50))
                case 7:
                    found[at:at] = self.text().encode(errors="surrogateescape")
                case _:
                    found = found if self.chance(0.9) else bytearray()
        return bytes(found)
