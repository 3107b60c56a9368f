"""Whether this machine has sandboxes, for code that never runs without one unless asked to."""

from __future__ import annotations

from kabuild.base.errors import Reason, SandboxError
from kabuild.sandbox import namespaces


def require_sandbox(what: str, *, waived: bool = False, waivable: bool = True) -> None:
    """Raise SandboxError if this machine has no sandbox for ``what``, which others wrote.

    Call it before anything runs. ``waived`` says that the user gave --sandbox=none, which commands
    have where it is ``waivable``.
    """
    why = None if waived else namespaces.probe()
    if why is not None:
        otherwise = "; --sandbox=none runs it with all your rights" if waivable else ""
        raise SandboxError(
            Reason.SANDBOX_UNAVAILABLE,
            f"{what} needs a sandbox, and this machine does not allow sandboxes ({why})",
            hint=f"'kabuild doctor' says why there is none, and how to get one{otherwise}",
        )
