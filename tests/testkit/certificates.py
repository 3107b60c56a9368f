"""A certificate authority for one test."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Authority:
    """Issues certificates; ``pem`` is its own."""

    def __init__(self, name: str = "test authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        made = self._draft(self._name, self._key, days=2).add_extension(constraints, critical=True)
        self.pem: bytes = made.sign(self._key, SHA256()).public_bytes(Encoding.PEM)

    def issue(self, host: str, *, days: int = 1) -> tuple[bytes, bytes]:
        """Certificate and private key for a host; with negative ``days`` it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(host)])
        made = self._draft(_name(host), key, days).add_extension(names, critical=False)
        certificate: bytes = made.sign(self._key, SHA256()).public_bytes(Encoding.PEM)
        private: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return certificate, private

    def _draft(self, subject: Any, key: Any, days: int) -> Any:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=3))
            .not_valid_after(now + timedelta(days=days))
        )


def _name(text: str) -> Any:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
