"""The offline agent ``random``: tunables picked at random, a control for ``tuner``.

pick.py KERNEL --seed=1
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from tunables import TunableError, apply, describe, find


def main(arguments: Sequence[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="picks a kernel's tunables at random")
    parser.add_argument("kernel", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    text = options.kernel.read_text()
    source = random.Random(options.seed)  # noqa: S311 - a control, no secret
    try:
        picked = {tunable: source.choice(tunable.values) for tunable in find(text)}
    except TunableError as error:
        print(f"{options.kernel.name}: {error}", file=sys.stderr)
        return 1
    print(describe(picked) or "the kernel declares no tunables")
    options.kernel.write_text(apply(text, picked))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
