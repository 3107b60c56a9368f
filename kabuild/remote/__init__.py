"""Layer 3b: a server of the Remote Execution API. Imports base, model, store.

    endpoint = Endpoint.of("grpc://cache:8980/main")
    with RemoteCache.connect(endpoint) as cache:
        cache.results.get_many(keys)          # entries of the action cache, or None
        cache.blobs.fetch(digests, store)     # into the local store, each hashed
        cache.executions.run(digest, timeouts, stopped=...)   # by one of its workers

The only home of gRPC. It is imported with ``client``, ``rpc`` and what stands on them, never with
``endpoint`` and ``signing``: commands that need no server do without it. Messages are written and
read with ``base.canonical``, as keys are. No error of gRPC's leaves: all are a RemoteError.
"""

import os

# Read when gRPC is imported. With its support of forks a child has threads, and gets no sandbox.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what goes wrong, RemoteError says
