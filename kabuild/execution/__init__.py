"""Layer 3d: single actions, from inputs to results. Imports base, model, store and sandbox.

    inputs = Inputs({"workspace": Path("."), ...}, store.index)
    strategy = LocalStrategy(store, spawner)
    executor = CachedExecutor(inputs, store.cas, store.actions, strategy, CachePolicy())

    found = executor.lookup(action, produced)      # Settled: from the cache; Prepared: must run
    settled = executor.execute(found, cancel)      # runs it and remembers what it came to

A command that fails is data (``Outcome.FAILED``); failing to run it is an exception.
"""

from typing import TYPE_CHECKING

from kabuild.base.lazy import lazy_names

if TYPE_CHECKING:
    from kabuild.execution.cached import CachedExecutor, CachePolicy, fresh_gates
    from kabuild.execution.inputs import Inputs, MissingOutputError
    from kabuild.execution.local import LocalStrategy
    from kabuild.execution.prepared import Prepared, prepare
    from kabuild.execution.strategy import Execution, Strategy

__all__ = [
    "CachePolicy",
    "CachedExecutor",
    "Execution",
    "Inputs",
    "LocalStrategy",
    "MissingOutputError",
    "Prepared",
    "Strategy",
    "fresh_gates",
    "prepare",
]

__getattr__ = lazy_names(
    __name__,
    {
        "CachePolicy": "cached",
        "CachedExecutor": "cached",
        "Execution": "strategy",
        "Inputs": "inputs",
        "LocalStrategy": "local",
        "MissingOutputError": "inputs",
        "Prepared": "prepared",
        "Strategy": "strategy",
        "fresh_gates": "cached",
        "prepare": "prepared",
    },
)
