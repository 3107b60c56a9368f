"""Layer 3f: published evaluations: what is in one, its file format, and running it again.

A bundle (``.kab``) holds every action of an evaluation as the Remote Execution API's messages,
which its key is the digest of, with all inputs and outputs by SHA-256. Running it again needs
no rule, no BUILD file and no code of whoever published it outside of a sandbox::

    manifest, blobs = collect(summary, store, ...)
    write_bundle(path, manifest, blobs)
    with open_bundle(path) as bundle: ...              # every blob verified as it is read
    compare(record, result, obstacle, get)   # reproduced, same outcome, different, not comparable
"""
