"""A node of a fleet: runs what an engine's worker hands on, in its own sandboxes, and signs it.

    node = Node(store, offer, strategy, turns, signer)
    with WorkerServer(path, node, store.cas) as server:
        server.serve(stopped)

The engine's worker (buildbox-worker of BuildGrid, buildbox-casd, ...) starts ``shim.py`` in a
directory that it staged. That passes the directory to the node by a Unix socket and waits. The node
believes nothing but what it hashed: the input root, the toolchains' fingerprints and the platform
are those of the key, or nothing runs. It writes nothing into the directory: the program gets open
files, and copies them.

Exit codes of the program; the numbers are those of ``sysexits.h`` where it has one:

==  ================================================================
0   the action ended, and the server may remember its result
10  it ended, and the server should not: a failing tool, a timeout
36  the machine failed while it ran
69  no node serves here, or it is about to stop
70  the directory is not an action of kabuild
71  the directory is not the input root that the action states
72  this node lacks one of the action's toolchains
73  this node has another platform
74  a device is in use or lost; nothing has begun
75  the node ended while the action ran
==  ================================================================
"""
