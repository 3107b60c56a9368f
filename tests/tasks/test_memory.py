"""What verifying a call takes of a device fits beside what others hold there."""

# mypy: allow-untyped-calls

from __future__ import annotations

import torch

from tests.tasks.chosen import judged_in_turn
from tests.tasks.declared import all_tasks
from tests.testkit.perf_specs import NoRunners, specs_of

from base.program import MachineFault  # isort: skip
from perf.oracle_memory import Verification  # isort: skip
from terms.perf import PerfPolicy  # isort: skip
from truth.judge import Judge  # isort: skip
from truth.oracle import TaskFault  # isort: skip

MOST_GIB = 20.0
"""All of a large device's memory but this may be taken by somebody else."""


def test_tasks_in_turn_are_verified_in_bounded_memory() -> None:
    """Counted without data, hence not of oracles that need values."""
    counted = {}
    with judged_in_turn("memory", all_tasks()) as tasks:
        for label, spec in specs_of("cuda", [task.label for task in tasks]):
            judge = Judge.assemble(spec, NoRunners(), PerfPolicy())
            for config in spec.configs:
                with torch.device("meta"):
                    try:
                        found = Verification.of(judge, spec.signature, config)
                    except (TaskFault, MachineFault, RuntimeError):
                        continue
                counted[label, config.name] = found.bytes / 2**30

    assert {name: gib for name, gib in counted.items() if gib > MOST_GIB} == {}
