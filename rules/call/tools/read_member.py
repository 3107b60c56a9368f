"""Writes a string of a JSON file, which is a module, into a file of its own.

    python tools/read_member.py kernel/definition.json reference out/definition.py

Exits with 1 and an error if the file has no such string.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str]) -> int:
    """Write the module; returns the exit status."""
    source, member, out = arguments
    try:
        table = json.loads(Path(source).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        print(f"{Path(source).name} is not a JSON file: {error}", file=sys.stderr)
        return 1
    text = table.get(member) if isinstance(table, dict) else None
    if not isinstance(text, str):
        print(f"{Path(source).name} has no string '{member}'", file=sys.stderr)
        return 1
    Path(out).write_text(text, encoding="utf-8", errors="backslashreplace")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
