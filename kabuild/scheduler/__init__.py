"""Layer 3e: runs action graphs. Imports base, model, store and execution.

    scheduler = Scheduler(executor, sink, FileLeases(store.leases), jobs=cpus(),
                          history=History(store.timings), stop=stop)
    result = scheduler.run(graph, requested)       # BuildResult: settled by label

The longest path goes first; CPU slots are never exceeded; devices are held exclusively, across
processes. The sink gets an event for everything that happens.
"""

from kabuild.scheduler.leasing import Pool, pools_of
from kabuild.scheduler.plan import History
from kabuild.scheduler.resources import FileLeases, Leases
from kabuild.scheduler.scheduler import BuildResult, Scheduler
from kabuild.scheduler.workers import Executor, ThreadWorkers, Workers

__all__ = [
    "BuildResult",
    "Executor",
    "FileLeases",
    "History",
    "Leases",
    "Pool",
    "Scheduler",
    "ThreadWorkers",
    "Workers",
    "pools_of",
]
