"""Sandboxes: the only part of kabuild that starts processes.

    with Spawner() as spawner:
        completed = spawner.run(SandboxSpec(argv=..., env=..., input_dir=..., ...), cancel)

``Spawner.run`` takes a frozen ``SandboxSpec`` and gives a frozen ``Completed``, from any number
of threads at once. A command that fails, crashes or breaks a limit is a result; only a machine
that fails raises ``kabuild.base.errors.SandboxError``, or ``UnsavedOutputsError``. ``probe()``
says why a machine refuses sandboxes; ``SandboxSpec(hermetic=False)`` then runs commands without
one, on request only.

What a command sees: ``/exec`` (its inputs, read-only, the working directory), ``/exec/out``,
``/tmp`` and ``/dev/shm`` (private, limited), the system's ``/usr /bin /lib*``, its ``mounts`` and
``trees``, stubs in ``/etc``, a bare ``/dev``, its own ``/proc``, its ``env``. No network, no other
process, no capabilities; user and group are 1000, the host is called ``kabuild``.

``limits.py``, ``namespaces.py``, ``rootfs.py`` and ``seccomp.py`` are self-contained: rules place
them into input trees, so that a judge can put a candidate into its own sandbox.
"""

from kabuild.sandbox.namespaces import probe
from kabuild.sandbox.process import Spawner
from kabuild.sandbox.run import Cancel, UnsavedOutputsError
from kabuild.sandbox.spec import (
    EXEC_ROOT,
    OUTPUT_ROOT,
    Completed,
    Limit,
    Output,
    OutputKind,
    SandboxLimits,
    SandboxSpec,
)

__all__ = [
    "EXEC_ROOT",
    "OUTPUT_ROOT",
    "Cancel",
    "Completed",
    "Limit",
    "Output",
    "OutputKind",
    "SandboxLimits",
    "SandboxSpec",
    "Spawner",
    "UnsavedOutputsError",
    "probe",
]
