"""Signers of shared results, and files with their keys."""

from __future__ import annotations

import base64
from functools import cache

from kabuild.remote.signing import Signer, TrustedKeys


@cache
def private_key(name: str) -> bytes:
    """An Ed25519 key of OpenSSH; one for each name."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = Ed25519PrivateKey.from_private_bytes(name.encode().ljust(32, b"."))
    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return pem


def signer(name: str = "ci") -> Signer:
    return Signer.of(private_key(name))


def allowed(*names: str, options: str = "") -> str:
    """Lines of an allowed-signers file."""
    return "".join(f"{name} {options and options + ' '}{public_key(name)}\n" for name in names)


def public_key(name: str) -> str:
    """As in ``id_ed25519.pub``."""
    blob = b"".join(
        len(part).to_bytes(4, "big") + part for part in (b"ssh-ed25519", signer(name).public)
    )
    return f"ssh-ed25519 {base64.b64encode(blob).decode()}"


def trusted(*names: str, options: str = "") -> TrustedKeys:
    return TrustedKeys.parse(allowed(*names, options=options).splitlines())
