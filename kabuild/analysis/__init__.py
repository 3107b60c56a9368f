"""Layer 2d: from targets to the static action graph. Nothing runs, nothing is written.

Public names::

    analysis = analyze(loader, labels, options)       # calls each rule once
    analysis.graph                                    # model.graph.ActionGraph
    analysis.gates(label)                             # the gates that `test` runs for a label
    analysis.builds(label)                            # the actions that `build` runs for it

Questions about declared targets, which call no rule, are in ``analysis.query`` (``query``)
and ``analysis.query_format`` (``FORMATS``); only the query command imports these.
"""

from kabuild.analysis.analyze import Resolve, analyze
from kabuild.analysis.result import Analysis, AnalyzedTarget, Judging

__all__ = ["Analysis", "AnalyzedTarget", "Judging", "Resolve", "analyze"]
