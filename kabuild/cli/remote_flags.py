"""The flags for a shared cache and a fleet: Bazel's names and meanings, where it has them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import click

from kabuild.base.errors import Reason, UsageError
from kabuild.cli.flags import RequestFlags
from kabuild.cli.options import Options, flag
from kabuild.cli.types import InputPath, WholeNumber
from kabuild.loading.request import BAD_HEADER, RemoteRequest, Request

_LONGEST_TIMEOUT, _LONGEST_QUEUE, _MOST_RETRIES, _MOST_JOBS = 3600.0, 86_400.0, 100, 1000

PROGRAM = "/usr/local/bin/kabuild-worker-exec"
"""As in ``execution.wire``, which is not imported for a help text."""


def _read_url(_: click.Context, __: click.Parameter, text: str) -> str:
    if text:
        from kabuild.remote.endpoint import Endpoint

        try:
            Endpoint.of(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    return text


def _read_headers(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse invalid headers even without a server; a value may be secret, so none is shown."""
    if not all(text.partition("=")[0].strip() and "=" in text for text in texts):
        raise UsageError(Reason.BAD_FLAG, BAD_HEADER)
    return texts


def _read_program(_: click.Context, __: click.Parameter, text: str) -> str:
    if text and not text.startswith("/"):
        raise click.BadParameter(f"must be an absolute path, got '{text}'")
    return text


@dataclass(frozen=True, kw_only=True)
class ServerFlags(Options):
    """Where a shared cache and a fleet are, and how to speak to them."""

    remote_cache: str = flag(
        "--remote_cache",
        default="",
        callback=_read_url,
        metavar="URL",
        help="A shared cache: grpc://HOST:PORT[/INSTANCE], grpcs://HOST or unix:PATH.",
    )
    remote_executor: str = flag(
        "--remote_executor",
        default="",
        callback=_read_url,
        metavar="URL",
        help="Run actions on the workers of this server; URLs as for --remote_cache.",
    )
    remote_instance_name: str = flag(
        "--remote_instance_name", default="", metavar="NAME", help="The server's instance."
    )
    remote_header: tuple[str, ...] = flag(
        "--remote_header",
        multiple=True,
        callback=_read_headers,
        metavar="NAME=VALUE",
        help="Send this with every call; NAME=env:VARIABLE reads a variable. Repeatable.",
    )
    tls_certificate: Path | None = flag(
        "--tls_certificate",
        type=InputPath(),
        help="PEM file of the authority behind the server's certificate.",
    )
    tls_client_certificate: Path | None = flag(
        "--tls_client_certificate", type=InputPath(), help="PEM of your own certificate."
    )
    tls_client_key: Path | None = flag(
        "--tls_client_key", type=InputPath(), help="PEM of its private key."
    )
    remote_timeout: float = flag(
        "--remote_timeout",
        type=click.FloatRange(min=0.1, max=_LONGEST_TIMEOUT),
        default=60.0,
        metavar="SECONDS",
        help="Give up on a server that does not answer for this long.  [default: 60]",
    )
    remote_retries: int = flag(
        "--remote_retries",
        type=WholeNumber(min=0, max=_MOST_RETRIES),
        default=5,
        metavar="N",
        help="Retry a call this often while the server is unavailable.  [default: 5]",
    )

    remote_queue_timeout: float = flag(
        "--remote_queue_timeout",
        type=click.FloatRange(min=0.1, max=_LONGEST_QUEUE),
        default=600.0,
        metavar="SECONDS",
        help="How long an action may wait for a worker.  [default: 600]",
    )
    remote_worker_program: str = flag(
        "--remote_worker_program",
        default="",
        callback=_read_program,
        metavar="PATH",
        help=f"The program that workers start.  [default: {PROGRAM}]",
    )

    def server(self) -> RemoteRequest | None:
        """The named servers; None if there are none."""
        if not (self.remote_cache or self.remote_executor):
            return None
        return RemoteRequest(
            url=self.remote_cache,
            executor=self.remote_executor,
            instance=self.remote_instance_name,
            header=self.remote_header,
            tls_certificate=self.tls_certificate,
            tls_client_certificate=self.tls_client_certificate,
            tls_client_key=self.tls_client_key,
            timeout=self.remote_timeout,
            retries=self.remote_retries,
            queue_timeout=self.remote_queue_timeout,
            program=self.remote_worker_program,
        )


@dataclass(frozen=True, kw_only=True)
class RemoteFlags(ServerFlags, RequestFlags):
    """What is taken from a shared cache, and what is sent there."""

    remote_accept_cached: bool = flag(
        "--remote_accept_cached/--noremote_accept_cached",
        default=True,
        help="Use results of the shared cache.  [default: yes]",
    )
    remote_upload_local_results: bool = flag(
        "--remote_upload_local_results/--noremote_upload_local_results",
        default=False,
        help="Send what this build executes, signed, to the shared cache; nothing that was "
        "cached before.  [default: no]",
    )
    remote_signing_key: Path | None = flag(
        "--remote_signing_key",
        type=InputPath(),
        help="Sign sent results with this Ed25519 key of OpenSSH.",
    )

    remote_jobs: int = flag(
        "--remote_jobs",
        type=WholeNumber(min=1, max=_MOST_JOBS),
        default=200,
        metavar="N",
        help="Actions to run on the fleet at once.  [default: 200]",
    )

    def refine(self, request: Request) -> Request:
        """Add the shared cache and the fleet."""
        remote = self.server()
        if remote is not None:
            remote = replace(
                remote,
                accept=self.remote_accept_cached,
                upload=self.remote_upload_local_results,
                signing_key=self.remote_signing_key,
                jobs=self.remote_jobs,
            )
        return super().refine(replace(request, remote=remote))
