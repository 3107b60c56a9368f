"""Layer 3f: published evaluations: what is in one, its file format, and running it again.

A bundle (``.kab``) holds every action of an evaluation as messages of the Remote Execution API,
whose digests are the keys, and all inputs and outputs by SHA-256. A replay needs no rule and no
BUILD file, and runs the publisher's code in sandboxes only::

    manifest, blobs = collect(summary, store, ...)
    write_bundle(path, manifest, blobs)
    with open_bundle(path) as bundle: ...              # every blob verified as it is read
    compare(record, result, obstacle, get)   # reproduced, same outcome, different, not comparable
"""
