"""Bundles for the commands that list many: each with what lies beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kabuild.base.errors import BundleError, Reason, UsageError
from kabuild.bundle.signature import SUFFIX as SIGNATURE
from kabuild.bundle.signature import signature_of, signer
from kabuild.bundle.verdicts import left_out
from kabuild.model.gate import Gates
from kabuild.published.origin import origins
from kabuild.published.unpack import unpack
from kabuild.report.evaluation import read_evaluation
from kabuild.report.replays import SUFFIX as REPLAY
from kabuild.report.replays import read_replay, replay_beside
from kabuild.report.site.listed import Listed
from kabuild.store import Store


def with_signer(item: Listed) -> Listed:
    """``item`` with the key that signed its bundle, if there is a signature beside it.

    Raises BundleError for a signature that is not the bundle's, or cannot be checked.
    """
    signature = item.beside.get(SIGNATURE)
    if signature is None:
        return item
    try:
        return replace(item, signer=signer(item.file, signature, None))
    except BundleError as error:
        why = f"{error.message}: {error.hint}" if error.hint else error.message
        hint = "sign the bundle again (kabuild publish --sign), or remove the signature"
        raise BundleError(error.reason, f"{signature}: {why}", hint=hint) from None


def listed(path: Path, store: Store, known: Gates, limit: int) -> Listed:
    """What is known of a bundle; errors name it. Raises UsageError and BundleError."""
    try:
        manifest = unpack(path, store, limit=limit)
        get = store.cas.get
        evaluation = read_evaluation(manifest, get, known)
        signature, replayed = signature_of(path), replay_beside(path)
        replay = read_replay(replayed, evaluation.digest) if replayed.exists() else None
        near = {SIGNATURE: signature, REPLAY: replayed}
        return Listed(
            evaluation=evaluation,
            file=path,
            beside={suffix: file for suffix, file in near.items() if file.exists()},
            replay=replay,
            foreign=origins(manifest.records, get).foreign,
            left_out=left_out(manifest, get, known),
        )
    except BundleError as error:
        if error.message.startswith(str(path)):
            raise
        raise BundleError(error.reason, f"{path}: {error.message}", hint=error.hint) from None
    except OSError as error:
        raise UsageError(Reason.BAD_FLAG, f"{path}: {error.strerror}") from None
