"""Hand in the editable file of a solution: ``replay.py DIRECTORY FILE``.

Copies ``DIRECTORY/FILE`` to ``out/solution/FILE``. Whatever else lies in the directory is
left behind, by construction.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(directory: str, name: str) -> int:
    """Copy one file; 1 when the solution does not have it."""
    source = Path(directory) / name
    if not source.is_file():
        found = ", ".join(sorted(path.name for path in Path(directory).glob("*"))) or "nothing"
        print(f"the solution has no file '{name}'; found: {found}", file=sys.stderr)
        return 1
    target = Path("out/solution") / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
