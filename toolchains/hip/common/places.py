"""From what was compiled to the author's lines: the table that a judge reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from sources import Sources


def write_places(sources: Sources, output: Path, code: Sequence[Sequence[int]] = ()) -> None:
    """Write the table.

    ``files``: by their names for the compiler, the author's name and, per line, the columns of
    tokens with their original lines and columns. ``code``: offset in the library, index of a
    file in ``files`` or -1 for none, line, column; empty if lines are told otherwise.
    """
    files = {
        name: {"name": laid.path.rpartition("/")[2], "lines": laid.origins}
        for name, laid in sources.files.items()
    }
    table = {"schema": 1, "files": files, "code": code}
    output.write_text(json.dumps(table, separators=(",", ":")) + "\n")
