"""Layer 5: skips loading, analysis and lookups of what has not changed.

A successful request is remembered package by package. When it is repeated, unchanged packages are
answered from memory, at the cost of a ``stat`` per file; the others go through ``pipeline.py``::

    recalled = recall(request, memories)            # None: nothing useful is remembered
    remember(request, memories, summary, recalled)  # after a build

The memory is only a shortcut: whatever it cannot vouch for is built.
"""
