"""Labels, patterns and query expressions: made by their grammars, and then broken."""

from __future__ import annotations

from tests.hostile.draw import LABELS, Draw
from tests.hostile.ground import Ground
from tests.hostile.kinds.kind import Kind

_FUNCTIONS = ("deps", "rdeps", "kind", "attr", "filter", "tests", "somepath", "allpaths", "x")
_OPERATORS = ("+", "-", "^", "union", "except", "intersect")
_COMMANDS = (
    *(("query",), ("build",), ("test", "--gates=compile"), ("aquery",), ("why",), ("info",)),
    *(("test", "--agent"), ("diff-keys", "x"), ("cache", "export", "made"), ("toolchain", "show")),
)


def label(draw: Draw) -> str:
    """A label, of parts that are right, with some that are not."""
    if draw.chance(0.3):
        return draw.choice(LABELS)
    parts = (
        "tasks",
        "family0",
        "t0",
        "t1",
        "t2",
        "...",
        "..",
        ".",
        "",
        "x",
        "T0",
        "é",
        "all",
        "out",
    )
    name = (
        "t0",
        "t0.perf",
        "all",
        "*",
        "*.compile",
        "...",
        "t0#2",
        "t0.perf#0",
        "",
        ".",
        "t0.",
        "x" * 300,
    )
    text = draw.choice(("//", "", "-//", "@x//", "///", "-", "--"))
    text += "/".join(draw.choice(parts) for _ in range(draw.randint(0, 5)))
    if draw.chance(0.6):
        text += ":" + draw.choice(name)
    return text if draw.chance(0.8) else damaged(draw, text)


def damaged(draw: Draw, text: str) -> str:
    """The text with bytes changed; what is no UTF-8 stays as it may stand in a command line."""
    return draw.damaged(text.encode(errors="surrogatepass")).decode(errors="replace")


def query(draw: Draw, depth: int = 0) -> str:
    """A query expression."""
    if depth > 4 or draw.chance(0.3):
        return label(draw) if draw.chance(0.8) else f'"{draw.text()}"'
    match draw.randint(0, 3):
        case 0:
            return f"({query(draw, depth + 1)})"
        case 1:
            joined = (query(draw, depth + 1), draw.choice(_OPERATORS), query(draw, depth + 1))
            return draw.choice((" ", "", "\n")).join(joined)
        case _:
            some = [query(draw, depth + 1) for _ in range(draw.randint(0, 3))]
            if draw.chance(0.4):
                some.insert(draw.randint(0, len(some)), draw.text())
            return f"{draw.choice(_FUNCTIONS)}({', '.join(some)})"


def long_query(draw: Draw) -> str:
    """A query of thousands of terms, or as deep."""
    count = draw.choice((50, 3000, 20_000))
    return draw.choice(
        (
            " + ".join(["//tasks/family0/t0"] * count),
            "(" * count + "//..." + ")" * count,
            "deps(" * count + "//..." + ")" * count,
            " - ".join(["//..."] * count),
            "(" * count,
        )
    )


def play_label(draw: Draw, ground: Ground) -> None:
    """One call with labels."""
    words = draw.choice(_COMMANDS)
    some = [label(draw) for _ in range(draw.choice((1, 1, 2, 5)))]
    split = ["--"] if draw.chance(0.5) else []
    ground.run(ground.call(*words, *split, *some, cwd=draw.choice(_directories(ground))))


def play_query(draw: Draw, ground: Ground) -> None:
    """One query."""
    text = long_query(draw) if draw.chance(0.03) else query(draw)
    if draw.chance(0.15):
        text = damaged(draw, text)
    output = draw.choice(("label", "label_kind", "location", "json", "build", "graph"))
    ground.run(ground.call("query", f"--output={output}", text))


def _directories(ground: Ground) -> tuple[str, ...]:
    root = str(ground.root)
    return (root, root, f"{root}/tasks", f"{root}/tasks/family0/t0", f"{root}/rules/copied")


KINDS = (Kind("labels", 1.0, play_label), Kind("queries", 1.0, play_query))
