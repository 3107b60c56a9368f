"""Part of a store as one file: written on one machine, read with distrust on another.

A tar compressed with zstd: ``manifest.json``, then ``cas/<hash>`` and ``ac/<hash>``, each in the
order of their hashes. Times, owners and modes are constant, so equal content is equal bytes.
"""
