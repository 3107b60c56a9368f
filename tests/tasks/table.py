"""The table of all tasks in tasks/README.md: ``python -m tests.tasks.table`` writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.tasks.declared import REPOSITORY, Declared, all_tasks
from tests.tasks.headroom import headroom

PAGE = REPOSITORY / "tasks" / "README.md"
BEGIN = "<!-- made by: python -m tests.tasks.table -->\n"
END = "<!-- end of the table -->\n"


def rendered(tasks: Sequence[Declared]) -> str:
    """The counts by family, and a row for each task."""
    counts = Counter(task.family for task in tasks)
    said = ", ".join(f"{number} of {family}" for family, number in counts.items())
    experts = sum(task.has_expert for task in tasks)
    rows = [
        f"{len(tasks)} tasks: {said}; {experts} have an expert.",
        "",
        "| family | task | pattern | bounded by | shapes from | expert | of the roof |",
        "|---|---|---|---|---|---|---|",
        *map(_row, tasks),
    ]
    return "\n".join(rows) + "\n"


def replaced(page: str, table: str) -> str:
    """The page with another table between the marks. Raises ValueError if it lacks a mark."""
    before, begun, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not begun or not ended:
        raise ValueError(f"{PAGE.name} lacks {BEGIN.strip()} or {END.strip()}")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def _row(task: Declared) -> str:
    bound = ", ".join(bound.removesuffix("-bound") for bound in task.bounds)
    models = ", ".join(task.models) or "round sizes"
    expert = "yes" if task.has_expert else ""
    known = headroom(task)
    shares = (known.given, known.best) if known else ()
    share = " → ".join(f"{100 * one:.0f} %" for one in shares if one)
    cells = (task.family, f"`{task.name}`", ", ".join(task.patterns), bound, models, expert, share)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(replaced(PAGE.read_text(), rendered(all_tasks())))
