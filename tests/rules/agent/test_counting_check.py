"""A check that counts accesses, where the platform cannot."""

from __future__ import annotations

import subprocess
import sys

from tests.testkit.cli import REPOSITORY

# As in a session's sandbox, where ``sandbox`` is a package of its own.
PATHS = [str(REPOSITORY / part) for part in ("kabuild", "rules/agent/tools", "rules/harness/tools")]
ASK = """
import sys
sys.path += sys.argv[1:]
from pathlib import Path
from types import SimpleNamespace
from bench import Bench

def bench(counting):
    order = SimpleNamespace(check=SimpleNamespace(counting=counting))
    return Bench(order, Path("/root"), Path("/scratch"))

for ask in (
    lambda: bench(None).analyze(b""),
    lambda: bench(None).rank([b""], 1.0),
    lambda: bench(SimpleNamespace(ranks="")).rank([b""], 1.0),
):
    try:
        ask()
    except ValueError as error:
        print(error)
"""


NOT_COUNTED = (
    "this kernel cannot be analyzed: HIP and Triton kernels can, on cpu; on GPUs' platforms, if "
    "the agent declares what 'counts'"
)


def test_what_nothing_counts_is_refused() -> None:
    """Before anything is compiled: with a sentence that an agent understands."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, *PATHS], capture_output=True, text=True, check=True
    )

    not_ranked = "nothing models the times of this session's device"
    assert done.stdout.splitlines() == [NOT_COUNTED, NOT_COUNTED, not_ranked]
