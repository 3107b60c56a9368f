"""Layer 5: what need not be loaded, analysed or looked up again, because nothing of it changed.

A request that ended well is remembered package by package. Asked again, the packages that look
as they did are answered from memory, at the cost of a ``stat`` per file; the others go through
``pipeline.py`` as ever::

    recalled = recall(request, memories)            # None: nothing of use is remembered
    remember(request, memories, summary, recalled)  # after a build

The memory is a short cut and never a source of truth: what it cannot vouch for is built.
"""
