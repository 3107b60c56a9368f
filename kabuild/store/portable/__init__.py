"""A part of a store as one file, which its reader does not trust.

A tar compressed with zstd: ``manifest.json``, then ``cas/<hash>`` and ``ac/<hash>``, each in the
order of their hashes. Times, owners and modes are constant, so equal content is equal bytes.
"""
