"""OpenSSH signatures of bundles: everyone has the tool, and many have a key.

A signature lies beside its bundle, as ``<bundle>.sig``. Its namespace prevents the use of
signatures that were made for something else.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from kabuild.base.errors import BundleError, Reason
from kabuild.base.fs import atomic_write
from kabuild.sandbox.unconfined import run_unconfined

NAMESPACE = "kabuild-bundle"
SUFFIX = ".sig"
UNSIGNED = "claimed by its publisher, unsigned: anyone may have written these verdicts"


def signature_of(bundle: Path) -> Path:
    """Where the signature of a bundle lies."""
    return bundle.with_name(bundle.name + SUFFIX)


def sign(bundle: Path, key: Path) -> Path:
    """Sign with an SSH key, which may be in an ssh-agent.

    Raises BundleError(NOT_SIGNED), and ``OSError`` if the signature cannot be written.

    ssh-keygen asks on the terminal for the key's passphrase, if it has one.
    """
    signature = signature_of(bundle)
    text = _run(["-Y", "sign", "-f", str(key), "-n", NAMESPACE], f"{key} cannot sign", bundle)
    atomic_write(signature, text.encode())
    return signature


def signer(bundle: Path, signature: Path, allowed: Path | None) -> str:
    """Who signed: a principal of ``allowed``, an OpenSSH allowed-signers file, else the key.

    Without ``allowed`` the signature is checked, but not whose it is. Raises
    BundleError(BAD_SIGNATURE).
    """
    known = ["-n", NAMESPACE, "-s", str(signature)]
    if not signature.is_file():
        raise BundleError(
            Reason.BAD_SIGNATURE, f"no signature at {signature}", hint="publish with --sign"
        )
    if allowed is None:
        text = _run(
            ["-Y", "check-novalidate", *known], "the signature belongs to another file", bundle
        )
        return text.rpartition(" with ")[2].strip() or text.strip()
    found = _run(
        ["-Y", "find-principals", "-f", str(allowed), "-s", str(signature)],
        f"no signer in {allowed} has its key",
    )
    principal = found.split("\n")[0].strip()
    _run(
        ["-Y", "verify", "-f", str(allowed), "-I", principal, *known],
        "the signature belongs to another file",
        bundle,
    )
    return principal


def _run(arguments: list[str], problem: str, stdin: Path | None = None) -> str:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise BundleError(
            Reason.NOT_SIGNED, "ssh-keygen is not installed", hint="apt-get install openssh-client"
        )
    try:
        done = run_unconfined([program, *arguments], stdin=stdin)
    except OSError as error:
        reason = Reason.NOT_SIGNED if arguments[1] == "sign" else Reason.BAD_SIGNATURE
        raise BundleError(reason, f"{error.filename}: {error.strerror}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        reason = Reason.NOT_SIGNED if arguments[1] == "sign" else Reason.BAD_SIGNATURE
        raise BundleError(reason, problem, hint=said[0] if said else "")
    return done.stdout
