"""Whose results count: signatures that OpenSSH reads, and everything that does not pass for one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.canonical import bytes_field, int_field, message_field, parse_fields, text_field
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, OutputFile
from kabuild.store.action_cache import decode, encode
from tests.testkit.fleet import require_fleet
from tests.testkit.reapi import message_class
from tests.testkit.store import MemoryCas

require_fleet()

from kabuild.remote.signing import (
    Distrust,
    Signer,
    TrustedKeys,
    armoured,
    signed_message,
    statement,
)
from tests.testkit.signers import allowed, private_key, public_key, signer, trusted

KEY = Digest.of(b"an action")
NOW = 1_800_000_000.0  # 2027-01-15
DAMAGED = "the key is damaged: copy the line of its .pub file again"


def entry_of(verdict: bytes = b"PASS") -> bytes:
    cas = MemoryCas()
    files = (OutputFile("tree/a", cas.put(b"a")), OutputFile("verdict.json", cas.put(verdict)))
    result = ActionResult(0, files, stdout=cas.put(b"out"), seconds=1.5, directories=("tree",))
    return encode(result, cas, ended=NOW)


def test_a_signed_entry_states_what_was_signed() -> None:
    entry = entry_of()

    assert trusted("ci").check(KEY, signer().sign(KEY, entry), NOW) == entry


def test_the_signature_is_where_the_protocol_leaves_room() -> None:
    """A server that knows nothing of it keeps it and everything else."""
    plain, signed = (
        message_class("ActionResult").FromString(entry)
        for entry in (entry_of(), signer().sign(KEY, entry_of()))
    )
    kept = signed.execution_metadata
    kept.DiscardUnknownFields()

    assert signed == plain


def test_a_server_may_add_and_reorder() -> None:
    """It may inline a file, and say who served it: what was signed is found again."""
    signed = signer().sign(KEY, entry_of())
    fields = [
        bytes_field(n, v, keep_empty=True) if isinstance(v, bytes) else int_field(n, v)
        for n, v in parse_fields(signed)
    ]
    changed = b"".join(sorted(fields, reverse=True)) + bytes_field(5, b"inlined stdout")
    changed += bytes_field(15, b"a field of tomorrow")

    assert trusted("ci").check(KEY, changed, NOW) == entry_of()


def test_an_unsigned_entry_does_not_count() -> None:
    assert trusted("ci").check(KEY, entry_of(), NOW) is Distrust.UNSIGNED


def test_an_unknown_signer_does_not_count() -> None:
    signed = signer("mallory").sign(KEY, entry_of())

    assert trusted("ci").check(KEY, signed, NOW) is Distrust.UNKNOWN


def test_another_verdict_under_the_same_signature_does_not_count() -> None:
    signed = signer().sign(KEY, entry_of(b"FAIL"))
    forged = signed.replace(Digest.of(b"FAIL").hash.encode(), Digest.of(b"PASS").hash.encode())

    assert forged != signed
    assert trusted("ci").check(KEY, forged, NOW) is Distrust.FORGED


def test_the_entry_of_another_key_does_not_count() -> None:
    signed = signer().sign(Digest.of(b"another action"), entry_of())

    assert trusted("ci").check(KEY, signed, NOW) is Distrust.FORGED


def test_one_good_signature_among_others_is_enough() -> None:
    """Two CI services may sign one entry; a stranger's signature spoils nothing."""
    entry = entry_of()
    parts = [signer(name).sign(KEY, entry) for name in ("mallory", "ci")]
    metadata = [dict(parse_fields(part))[9] for part in parts]
    assert all(isinstance(part, bytes) for part in metadata)
    extra = next(v for n, v in parse_fields(metadata[0]) if n == 11)  # type: ignore[arg-type]
    both = message_field(11, extra) + metadata[1]  # type: ignore[operator,arg-type]
    head = entry[: entry.rindex(message_field(9, dict(parse_fields(entry))[9]))]  # type: ignore[arg-type]

    assert trusted("ci").check(KEY, head + message_field(9, both), NOW) == entry


@given(st.data())
def test_no_changed_byte_makes_another_statement(data: st.DataObject) -> None:
    """Any change is refused, or leaves what is stated as it was."""
    signed = bytearray(signer().sign(KEY, entry_of()))
    at = data.draw(st.integers(0, len(signed) - 1))
    signed[at] ^= data.draw(st.integers(1, 255))

    assert trusted("ci").check(KEY, bytes(signed), NOW) in {entry_of(), *Distrust}


@given(st.binary(max_size=300))
def test_rubbish_is_refused(data: bytes) -> None:
    assert isinstance(trusted("ci").check(KEY, data, NOW), Distrust)


def test_what_is_checked_is_what_is_read() -> None:
    """A second set of metadata, or of files, is either stated or not seen."""
    signed = signer().sign(KEY, entry_of())
    smuggled = signed + message_field(9, text_field(1, "elsewhere"))
    more = signed + message_field(2, text_field(1, "out/x") + message_field(2, KEY.to_wire()))

    assert trusted("ci").check(KEY, smuggled, NOW) is not entry_of()
    assert isinstance(trusted("ci").check(KEY, more, NOW), Distrust)
    said = trusted("ci").check(KEY, smuggled, NOW)
    assert isinstance(said, Distrust) or said == entry_of()


@pytest.mark.parametrize(
    ("options", "counts"),
    [
        ('valid-before="20280101Z"', True),
        ('valid-before="20270101Z"', False),
        ('valid-after="20280101Z"', False),
        ('valid-after="20260101",valid-before="202801010000"', True),
    ],
)
def test_a_key_counts_while_it_is_valid(options: str, counts: bool) -> None:
    found = trusted("ci", options=options).check(KEY, signer().sign(KEY, entry_of()), NOW)

    assert found == (entry_of() if counts else Distrust.EXPIRED)


def test_a_key_for_bundles_only_does_not_count() -> None:
    keys = trusted("ci", options='namespaces="kabuild-bundle"')

    assert not keys.keys
    assert trusted("ci", options='namespaces="kabuild-bundle,kabuild-result"').keys


def test_comments_and_names_are_read_as_openssh_does() -> None:
    text = f'# ours\n\n  {allowed("ci").strip()} a comment\n"two words" {public_key("x")}\n'

    keys = TrustedKeys.parse(text.splitlines()).keys

    assert {key.principal for key in keys.values()} == {"ci", "two words"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("ci", "expected NAME ssh-ed25519 KEY"),
        ("ci ssh-ed25519", "expected NAME ssh-ed25519 KEY"),
        ("ci ssh-ed25519 %%%", DAMAGED),
        ("ci ssh-ed25519 AAAA", DAMAGED),
        ("ci ssh-rsa AAAA", "a key of kind 'ssh-rsa' is not supported, use ssh-ed25519"),
        ("ci cert-authority ssh-ed25519 AAAA", "the option 'cert-authority' is not supported"),
        (f"ci ssh-ed25519 {public_key('ci').split()[1][:-8]}", DAMAGED),
    ],
)
def test_a_wrong_line_is_named(line: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        TrustedKeys.parse(["# one", line])

    assert caught.value.args == (2, problem)


def test_a_time_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="'soon' is not a time"):
        trusted("ci", options='valid-before="soon"')


def test_a_key_that_cannot_sign_is_refused() -> None:
    with pytest.raises(ValueError, match="not a private key"):
        Signer.of(b"hello")
    with pytest.raises(ValueError, match="not a private key"):
        Signer.of(public_key("ci").encode())


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="apt-get install openssh-client")
def test_openssh_reads_our_signatures_and_we_its_keys(tmp_path: Path) -> None:
    (tmp_path / "signers").write_text(allowed("ci"))
    (tmp_path / "key").write_bytes(private_key("ci"))
    signed = signer().sign(KEY, entry_of())
    (tmp_path / "sig").write_text(armoured(signed))
    verify = ["ssh-keygen", "-Y", "verify", "-f", "signers", "-I", "ci", "-n", "kabuild-result"]

    good, bad = (
        subprocess.run([*verify, "-s", "sig"], cwd=tmp_path, input=message, check=False)
        for message in (signed_message(KEY, signed), signed_message(KEY, entry_of(b"FAIL")))
    )
    asked = ["ssh-keygen", "-q", "-t", "ed25519", "-f", "sealed"]
    subprocess.run([*asked, "-N", "secret"], cwd=tmp_path, check=True)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", "rsa"], cwd=tmp_path, check=True
    )

    assert (good.returncode, bad.returncode != 0) == (0, True)
    with pytest.raises(ValueError, match="has a passphrase"):
        Signer.of((tmp_path / "sealed").read_bytes())
    with pytest.raises(ValueError, match="not an Ed25519 key"):
        Signer.of((tmp_path / "rsa").read_bytes())


def test_a_private_key_is_in_no_representation() -> None:
    assert "private" not in repr(signer()).lower()


def test_what_is_stated_can_be_decoded() -> None:
    cas = MemoryCas()
    result = ActionResult(0, (OutputFile("a", cas.put(b"a")),), seconds=2.5)

    said = statement(signer().sign(KEY, encode(result, cas, ended=NOW)))

    assert decode(said, cas) == result
