"""A comparison of two agents, for people."""

from __future__ import annotations

from collections.abc import Iterator

from kabuild.base.listing import abridged
from kabuild.report.failures import printable
from kabuild.report.paired import FEWEST, Comparison, Pair

_MARKS = {0: "=", 1: "+", 2: "-"}


def render_comparison(found: Comparison) -> str:
    """A line for each pair, what they come to, and what is in none of them."""
    sections = (_table(found), list(_figures(found)), list(_left_out(found)))
    return printable("\n\n".join("\n".join(lines) for lines in sections if lines))


def _table(found: Comparison) -> list[str]:
    if not found.pairs:
        return []
    rows = [("task", *found.names, "ratio"), *(_cells(pair, found.names) for pair in found.pairs)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        f"{task:{widths[0]}}  {one:>{widths[1]}}  {other:>{widths[2]}}  {ratio}"
        for task, one, other, ratio in rows
    ]


def _cells(pair: Pair, names: tuple[str, str]) -> tuple[str, str, str, str]:
    one, other = _told(pair.one, pair.one_right), _told(pair.other, pair.other_right)
    ratio = f"{pair.ratio:.3f}x {_MARKS[pair.winner]}"
    if pair.only_right:
        ratio += f"  only {names[pair.only_right - 1]} is right"
    return pair.task, one, other, ratio


def _told(figure: float, right: float) -> str:
    """``1.52x``; where not all trials were right, with the share of those that were."""
    if right == 1.0:
        return f"{figure:.2f}x"
    return f"{figure:.2f}x ({right:.0%} right)" if right else f"failed ({figure:.2f}x)"


def _figures(found: Comparison) -> Iterator[str]:
    one, other = found.names
    if found.ratio is None:
        yield f"{one} / {other}: nothing to compare, since no task of both was judged"
    else:
        interval = f"95 % interval {found.low:.3f} to {found.high:.3f}"
        yield f"{one} / {other}: {found.ratio:.3f}x, {interval} ({_sureness(found)})"
        counts = (("win", found.wins), ("loss", found.losses), ("tie", found.ties))
        told = ", ".join(_counted(number, noun) for noun, number in counts)
        yield f"{told}; sign test p = {found.p_value:.3g}"
        if any(pair.only_right for pair in found.pairs):
            yield "where only one is right, it wins, and no ratio is worse for it than 1.000x"
    for name, costs in zip(found.names, found.costs, strict=True):
        if costs:
            told = ", ".join(f"{value:g} {unit}" for unit, value in costs.items())
            yield f"all sessions of {name}: {told}"
    for name, ended in zip(found.names, found.ended, strict=True):
        for end in dict.fromkeys(ended.values()):
            where = abridged([label for label, how in ended.items() if how == end])
            yield f"{name}: {end} ({where})"


def _sureness(found: Comparison) -> str:
    pairs = len(found.pairs)
    if pairs < FEWEST:
        return f"{_counted(pairs, 'task')} {'is' if pairs == 1 else 'are'} too few to be sure"
    return "significant" if found.significant else "not significant"


def _left_out(found: Comparison) -> Iterator[str]:
    """What is in no figure, by name."""
    if found.pairs and not found.timed:
        yield "nothing was timed, and 1.00x is said of all: the gate perf was not asked for"
    for name, missing in zip(found.names, found.unjudged, strict=True):
        if missing:
            told = ", ".join([f"{label} ({why})" for label, why in missing.items()])
            yield f"not judged of {name}, and in no figure: {told}"
    if found.unpaired:
        yield f"in one of them only, and in no figure: {', '.join(found.unpaired)}"


def _counted(number: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
