"""Bundles for the commands that list many: each with what lies beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kabuild.base.errors import BundleError, Reason, UsageError
from kabuild.bundle.signature import SUFFIX as SIGNATURE
from kabuild.bundle.signature import signature_of, signer
from kabuild.bundle.verdicts import left_out
from kabuild.model.gate import Gates
from kabuild.published.copied import copied_bundle, copied_file
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
        what = f"{signature_of(item.source)}: {why}"
        raise BundleError(error.reason, what, hint=hint) from None


def listed(path: Path, store: Store, known: Gates, limit: int) -> Listed:
    """What is known of a bundle; errors name it. Raises UsageError and BundleError.

    Its files are copies, which last as long as ``store`` is open: what is checked is what is shown.
    """
    try:
        copy = copied_bundle(path, store)
        manifest = unpack(copy, store, limit=limit, named=path)
        get = store.cas.get
        evaluation = read_evaluation(manifest, get, known)
        beside = _copied(path, store)
        replay = beside.get(REPLAY)
        return Listed(
            evaluation=evaluation,
            file=copy,
            source=path,
            beside=beside,
            replay=read_replay(replay, evaluation.digest, replay_beside(path)) if replay else None,
            foreign=origins(manifest.records, get).foreign,
            left_out=left_out(manifest, get, known),
        )
    except BundleError as error:
        if error.message.startswith(str(path)):
            raise
        raise BundleError(error.reason, f"{path}: {error.message}", hint=error.hint) from None
    except OSError as error:
        raise UsageError(Reason.BAD_FLAG, f"{path}: {error.strerror}") from None


def _copied(path: Path, store: Store) -> Mapping[str, Path]:
    """By suffix, copies of what lies beside a bundle. Raises UsageError, which names the file."""
    near = {SIGNATURE: signature_of(path), REPLAY: replay_beside(path)}
    return {suffix: copied_file(file, store) for suffix, file in near.items() if file.exists()}
