"""Signatures by real SSH keys."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from kabuild.base.errors import BundleError, Reason
from kabuild.bundle.signature import sign, signature_of, signer
from kabuild.cli import verify
from kabuild.published.verify import Verified, verify_file

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kabuild.published.conftest import Published

KEYGEN = shutil.which("ssh-keygen")
pytestmark = pytest.mark.skipif(KEYGEN is None, reason="needs ssh-keygen")


@dataclass(frozen=True)
class Keys:
    """A key pair and the file that vouches for it."""

    private: Path
    allowed: Path


def make_keys(directory: Path, name: str) -> Keys:
    """A new key of ``name``."""
    private = directory / name
    keygen(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(private)])
    public = private.with_suffix(".pub").read_text().split()
    allowed = directory / f"{name}.allowed"
    allowed.write_text(f"{name}@example.org {public[0]} {public[1]}\n")
    return Keys(private, allowed)


def keygen(arguments: list[str]) -> None:
    """Run ssh-keygen."""
    assert KEYGEN
    subprocess.run([KEYGEN, *arguments], check=True, capture_output=True)


@pytest.fixture
def bundle(published: Published, tmp_path: Path) -> Path:
    path = tmp_path / "all.kab"
    path.write_bytes(published.bundle.read_bytes())
    return path


def test_a_signer_is_known_by_name_or_by_key(bundle: Path, tmp_path: Path) -> None:
    keys = make_keys(tmp_path, "ada")
    assert sign(bundle, keys.private) == signature_of(bundle)
    assert signer(bundle, signature_of(bundle), keys.allowed) == "ada@example.org"
    assert "SHA256:" in signer(bundle, signature_of(bundle), None)


def test_a_changed_bundle_has_no_signature(bundle: Path, tmp_path: Path) -> None:
    keys = make_keys(tmp_path, "ada")
    sign(bundle, keys.private)
    bundle.write_bytes(bundle.read_bytes() + b"x")
    for allowed in (None, keys.allowed):
        with pytest.raises(BundleError, match="belongs to another file") as caught:
            signer(bundle, signature_of(bundle), allowed)
        assert caught.value.reason is Reason.BAD_SIGNATURE


def test_a_strangers_signature_counts_for_nothing(bundle: Path, tmp_path: Path) -> None:
    keys, stranger = make_keys(tmp_path, "ada"), make_keys(tmp_path, "eve")
    sign(bundle, stranger.private)
    with pytest.raises(BundleError, match="no signer in"):
        signer(bundle, signature_of(bundle), keys.allowed)


def test_a_signature_for_another_purpose_counts_for_nothing(bundle: Path, tmp_path: Path) -> None:
    keys = make_keys(tmp_path, "ada")
    keygen(["-Y", "sign", "-f", str(keys.private), "-n", "git", str(bundle)])
    for allowed in (None, keys.allowed):
        with pytest.raises(BundleError):
            signer(bundle, signature_of(bundle), allowed)


def test_a_key_that_is_none_is_named(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("no key")
    with pytest.raises(BundleError, match="cannot sign") as caught:
        sign(bundle, tmp_path / "key")
    assert caught.value.reason is Reason.NOT_SIGNED


@pytest.mark.parametrize("other", [b"another bundle", None])
def test_what_is_checked_is_what_is_shown(
    published: Published,
    bundle: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    other: bytes | None,
) -> None:
    """The bundle is replaced, or removed, between the checks of its content and its signature."""
    keys = make_keys(tmp_path, "ada")
    sign(bundle, keys.private)
    content = bundle.read_bytes()

    def replaced(path: Path, *args: Any, **more: Any) -> Verified:
        found = verify_file(path, *args, **more)
        bundle.write_bytes(other) if other else bundle.unlink()
        return found

    monkeypatch.setattr(verify, "verify_file", replaced)
    monkeypatch.setenv("KABUILD_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(published.workspace.root)
    called = [str(bundle), f"--allowed_signers={keys.allowed}"]
    ran = CliRunner().invoke(verify.command, called)
    assert ran.output.splitlines()[2] == "signed by ada@example.org", ran.output
    assert ran.output.startswith(f"{bundle}: whole; 6 actions")

    bundle.write_bytes(content + b"more")
    with pytest.raises(BundleError, match=f"{bundle} is damaged"):
        CliRunner().invoke(verify.command, called, catch_exceptions=False)
    assert not [*(tmp_path / "cache/tmp").rglob("copy.*")]


def test_the_command_line_signs_and_checks(
    published: Published, bundle: Path, tmp_path: Path
) -> None:
    keys = make_keys(tmp_path, "ada")
    signed = tmp_path / "signed.kab"
    ran = published.workspace.run("publish", "//...", "-o", str(signed), f"--sign={keys.private}")
    assert ran.code == 0
    assert f"{signed}.sig: its signature" in ran.out

    elsewhere = published.elsewhere(tmp_path)
    known = elsewhere.run("verify", str(signed), f"--allowed_signers={keys.allowed}")
    assert known.code == 0
    assert "signed by ada@example.org" in known.out
    unsigned = elsewhere.run("verify", str(bundle)).out
    assert "claimed by its publisher, unsigned" in unsigned
    assert "\nrequested gates: compile, correctness, perf, unseen, score\n" in unsigned
    missing = elsewhere.run("verify", str(bundle), f"--allowed_signers={keys.allowed}")
    assert missing.code == 1
    assert "no signature at" in missing.err
