"""The shared cache of a build, from flags and WORKSPACE.toml; checked before anything runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kabuild.base.errors import (
    InfraError,
    LoadError,
    Position,
    Reason,
    SandboxError,
    UsageError,
)
from kabuild.base.reading import read_bounded
from kabuild.loading.request import BAD_HEADER, RemoteRequest, Request
from kabuild.loading.workspace import Workspace
from kabuild.model.graph import ActionGraph
from kabuild.remote.endpoint import Endpoint
from kabuild.store.store import Store

if TYPE_CHECKING:
    from kabuild.execution.shared import SharedCache
    from kabuild.remote.client import RemoteCache
    from kabuild.remote.signing import Signer, TrustedKeys

CACHE_FLAG, EXECUTOR_FLAG = "--remote_cache", "--remote_executor"

MOST_BYTES = 1 << 20
"""Of a file with keys or certificates."""

_NEEDED = ("grpc", "cryptography")
_DISTRIBUTIONS = {"grpc": "grpcio", "prometheus_client": "prometheus-client"}


@contextmanager
def sharing(
    request: Request,
    workspace: Workspace,
    graph: ActionGraph,
    store: Store,
    *,
    own_salt: str,
    warn: Callable[[str], None],
    stop: threading.Event,
) -> Iterator[SharedCache | None]:
    """The shared cache that ``request`` names, if any.

    Nothing is connected before something is looked up that the store lacks. ``own_salt`` is a salt
    that the workspace does not tell; what knows it stays here. Raises UsageError and LoadError for
    what is wrong in flags and files, SandboxError if this machine has no sandbox, and
    InfraError where Python packages are missing.
    """
    remote = request.remote
    if remote is None or not remote.url:
        yield None
        return
    endpoint = endpoint_of(remote, request.cwd)
    trusted = trusted_of(workspace, CACHE_FLAG)
    require_packages(CACHE_FLAG)
    signer = _signer(remote, request.cwd)
    require_sandbox(request)
    from kabuild.execution.confidential import knowing
    from kabuild.execution.shared import SharedCache, Terms

    def connect() -> RemoteCache:
        """Only now is gRPC imported."""
        from kabuild.remote.client import RemoteCache

        return RemoteCache.connect(endpoint, stopped=stop.is_set)

    terms = Terms(
        name=endpoint.shown,
        trusted=trusted,
        accept=remote.accept,
        signer=signer,
        private=knowing(graph, own_salt) if own_salt else frozenset(),
    )
    with SharedCache(store, terms, connect, warn=warn, stopped=stop.is_set) as shared:
        yield shared


def endpoint_of(remote: RemoteRequest, cwd: Path, flag: str = CACHE_FLAG) -> Endpoint:
    """Where the server of ``flag`` is, with the certificates and tokens for it.

    Raises UsageError.
    """
    url = remote.url if flag == CACHE_FLAG else remote.executor
    try:
        endpoint = Endpoint.of(url)
    except ValueError as error:
        raise UsageError(Reason.BAD_FLAG, f"{flag}: {error}") from None
    if remote.instance and endpoint.instance not in {"", remote.instance}:
        raise UsageError(
            Reason.BAD_FLAG,
            f"--remote_instance_name={remote.instance} and the URL's instance "
            f"'{endpoint.instance}' differ",
        )
    files = {
        "--tls_certificate": remote.tls_certificate,
        "--tls_client_certificate": remote.tls_client_certificate,
        "--tls_client_key": remote.tls_client_key,
    }
    for name, path in files.items():
        if path and not endpoint.secure:
            what = f"{name} needs a URL with TLS: grpcs://, got {url}"
            raise UsageError(Reason.BAD_FLAG, what)
    if bool(remote.tls_client_certificate) != bool(remote.tls_client_key):
        what = "--tls_client_certificate and --tls_client_key belong together"
        raise UsageError(Reason.BAD_FLAG, what)
    roots, certificate, key = (_read(name, path, cwd) for name, path in files.items())
    return replace(
        endpoint,
        instance=remote.instance or endpoint.instance,
        headers=tuple(map(_header, remote.header)),
        roots=roots,
        certificate=certificate,
        key=key,
        timeout=remote.timeout,
        retries=remote.retries,
    )


def require_packages(flag: str, *needed: str) -> None:
    """Raise InfraError where what the extra ``fleet`` installs is not there.

    ``needed`` are modules; if none are given, those that all of it needs.
    """
    missing = [name for name in needed or _NEEDED if find_spec(name) is None]
    if missing:
        names = " and ".join(_DISTRIBUTIONS.get(name, name) for name in missing)
        raise InfraError(
            Reason.NO_PACKAGE,
            f"{flag} needs {names}, which {'is' if len(missing) == 1 else 'are'} not installed",
            hint="get it with: python -m pip install 'kabuild[fleet]'",
        )


def trusted_of(workspace: Workspace, flag: str) -> TrustedKeys:
    """The keys of those whose results count, which ``flag`` needs. Raises UsageError, LoadError."""
    from kabuild.remote.signing import TrustedKeys

    if workspace.trusted_keys is None:
        raise UsageError(
            Reason.BAD_FLAG,
            f"{flag}: {workspace.file.shown} has no [remote] trusted_keys: no result counts",
            hint='[remote] trusted_keys = "fleet.keys" names a file with a line for each signer:\n'
            "NAME ssh-ed25519 KEY, as in an allowed-signers file of OpenSSH",
        )
    path = workspace.root / workspace.trusted_keys
    try:
        keys = TrustedKeys.parse(read_bounded(path, MOST_BYTES).decode().splitlines())
    except OSError as error:
        raise LoadError(
            Reason.MISSING_FILE,
            f"{workspace.trusted_keys}: {error.strerror}",
            position=workspace.position("remote", "trusted_keys"),
        ) from None
    except UnicodeDecodeError:
        position = Position(workspace.trusted_keys)
        raise LoadError(Reason.BAD_ATTRIBUTE, "it is not UTF-8 text", position=position) from None
    except ValueError as error:
        line, problem = error.args
        position = Position(workspace.trusted_keys, line)
        raise LoadError(Reason.BAD_ATTRIBUTE, problem, position=position) from None
    if not keys.keys:
        what = "it has no key for results"
        position = Position(workspace.trusted_keys)
        raise LoadError(Reason.BAD_ATTRIBUTE, what, position=position)
    return keys


def _signer(remote: RemoteRequest, cwd: Path) -> Signer | None:
    """The signer of sent results; None if nothing is sent."""
    if remote.upload != (remote.signing_key is not None):
        raise UsageError(
            Reason.BAD_FLAG,
            "--remote_upload_local_results and --remote_signing_key=FILE belong together",
            hint="ssh-keygen -t ed25519 -N '' -f fleet.key makes such a key",
        )
    data = _read("--remote_signing_key", remote.signing_key, cwd)
    if data is None:
        return None
    from kabuild.remote.signing import Signer

    try:
        return Signer.of(data)
    except ValueError as error:
        what = f"--remote_signing_key: {remote.signing_key}: {error}"
        raise UsageError(Reason.BAD_FLAG, what) from None


def require_sandbox(request: Request, what: str = "a shared cache") -> None:
    """Raise SandboxError if commands would run without a sandbox: such results are not shared.

    Call it before gRPC is imported, whose threads would be in the way.
    """
    from kabuild.sandbox.namespaces import probe

    why = probe() if request.hermetic else "--sandbox=none was given"
    if why is not None:
        raise SandboxError(
            Reason.SANDBOX_UNAVAILABLE,
            f"{what} needs sandboxes: {why}",
            hint="'kabuild doctor' says how to get them; --remote_cache= --remote_executor= "
            "turns sharing off",
        )


def _header(text: str) -> tuple[str, str]:
    """Name and value of ``NAME=VALUE`` or ``NAME=env:VARIABLE``."""
    name, equals, value = text.partition("=")
    name = name.strip().lower()
    if not equals or not name or not name.replace("-", "").replace("_", "").isalnum():
        raise UsageError(Reason.BAD_FLAG, BAD_HEADER)
    if value.startswith("env:"):
        variable = value.removeprefix("env:")
        found = os.environ.get(variable)
        if found is None:
            what = f"--remote_header={name}: the variable {variable} is not set"
            raise UsageError(Reason.BAD_FLAG, what)
        value = found.strip()
    if not (name.isascii() and value.isascii() and value.isprintable()):
        what = f"--remote_header={name}: the value is not printable ASCII"
        raise UsageError(Reason.BAD_FLAG, what)
    return name, value


def _read(flag: str, path: Path | None, cwd: Path) -> bytes | None:
    if path is None:
        return None
    try:
        return read_bounded(cwd / path.expanduser(), MOST_BYTES)
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(Reason.BAD_FLAG, f"{flag}: {path}: {why}") from None
