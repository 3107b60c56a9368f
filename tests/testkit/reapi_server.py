"""A cache of the Remote Execution API in this process, whose faults a test writes down.

It reads and writes messages with protobuf: an opinion of its own on what kabuild sends.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, Self

import grpc

from kabuild.model.digest import Digest
from kabuild.remote.endpoint import Endpoint
from tests.testkit.reapi import message_class, parse

_API = "build.bazel.remote.execution.v2"
_CHUNK = 64 << 10


class Engine(Protocol):
    """Executes actions for a server; see ``tests.testkit.engine``."""

    def execute(self, action: str, *, anew: bool) -> Iterator[bytes]:
        """The operations that a client hears of."""
        ...

    def wait(self, name: str) -> Iterator[bytes] | None:
        """The same, of one that began; None if there is none."""
        ...

    def cancel(self, name: str) -> None:
        """End one."""
        ...


Fault = Callable[[int], grpc.StatusCode | None]
"""What the n-th call of a method, from 0, is answered with; None is the right answer."""


class ReapiServer:
    """A server on a port of its own. ``blobs`` and ``results`` are open to tests.

    Attributes:
        blobs: by hash; results: entries by the hash of their key.
        faults: by method.
        calls: how often each method was called.
        instances: the names of instances that it has.
        engine: executes actions; None for a mere cache.
        slow: the methods that do not answer before ``close``.
        writable, batch, functions: what it says that it can do.
    """

    def __init__(self, credentials: Any = None) -> None:
        """``credentials`` are gRPC's, for a server with TLS."""
        self.blobs: dict[str, bytes] = {}
        self.results: dict[str, bytes] = {}
        self.faults: dict[str, Fault] = {}
        self.calls: Counter[str] = Counter()
        self.instances = {""}
        self.slow: set[str] = set()
        self.headers: list[dict[str, str | bytes]] = []
        self.writable = True
        self.batch = 0
        self.functions = [1]
        self.most_at_once = 0
        self._at_once = 0
        self._guard = threading.Lock()
        self._closing = threading.Event()
        self.engine: Engine | None = None
        self._server: Any = grpc.server(ThreadPoolExecutor(32), options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers(
            (
                *self._executing(),
                self._unary("Capabilities", GetCapabilities=self._capabilities),
                self._unary(
                    "ActionCache",
                    GetActionResult=self._get_result,
                    UpdateActionResult=self._update_result,
                ),
                self._unary(
                    "ContentAddressableStorage",
                    FindMissingBlobs=self._find_missing,
                    BatchReadBlobs=self._batch_read,
                    BatchUpdateBlobs=self._batch_update,
                ),
                grpc.method_handlers_generic_handler(
                    "google.bytestream.ByteStream",
                    {
                        "Read": grpc.unary_stream_rpc_method_handler(self._read),
                        "Write": grpc.stream_unary_rpc_method_handler(self._write),
                    },
                ),
            )
        )
        self.port = (
            self._server.add_secure_port("127.0.0.1:0", credentials)
            if credentials
            else self._server.add_insecure_port("127.0.0.1:0")
        )
        self._server.start()

    @property
    def url(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"

    def endpoint(self, *, timeout: float = 20.0, retries: int = 3) -> Endpoint:
        return Endpoint(f"127.0.0.1:{self.port}", timeout=timeout, retries=retries)

    def close(self) -> None:
        self._closing.set()
        self._server.stop(None).wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def put(self, data: bytes) -> Digest:
        digest = Digest.of(data)
        self.blobs[digest.hash] = data
        return digest

    def _unary(self, service: str, **methods: Any) -> Any:
        return grpc.method_handlers_generic_handler(
            f"{_API}.{service}",
            {name: grpc.unary_unary_rpc_method_handler(m) for name, m in methods.items()},
        )

    def _executing(self) -> tuple[Any, Any]:
        return (
            grpc.method_handlers_generic_handler(
                f"{_API}.Execution",
                {
                    "Execute": grpc.unary_stream_rpc_method_handler(self._execute),
                    "WaitExecution": grpc.unary_stream_rpc_method_handler(self._wait),
                },
            ),
            grpc.method_handlers_generic_handler(
                "google.longrunning.Operations",
                {"CancelOperation": grpc.unary_unary_rpc_method_handler(self._cancel)},
            ),
        )

    def _execute(self, data: bytes, context: Any) -> Iterator[bytes]:
        request = parse("ExecuteRequest", data)
        self._begin("Execute", context, request.instance_name)
        if self.engine is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "this is a cache")
        assert self.engine is not None
        yield from self.engine.execute(request.action_digest.hash, anew=request.skip_cache_lookup)

    def _wait(self, data: bytes, context: Any) -> Iterator[bytes]:
        self._begin("WaitExecution", context, "")
        found = self.engine.wait(parse("WaitExecutionRequest", data).name) if self.engine else None
        if found is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such operation")
        yield from found or ()

    def _cancel(self, data: bytes, context: Any) -> bytes:
        self._begin("CancelOperation", context, "")
        assert self.engine is not None
        self.engine.cancel(parse("CancelOperationRequest", data).name)
        return b""

    def _begin(self, name: str, context: Any, instance: str) -> None:
        """Count a call, and fail or wait as the test says."""
        with self._guard:
            number = self.calls[name]
            self.calls[name] += 1
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self.headers.append(dict(context.invocation_metadata()))
        context.add_callback(self._end)
        if name in self.slow:
            self._closing.wait()
        fault = self.faults.get(name)
        if fault and (code := fault(number)):
            context.abort(code, f"{name} fails as told")
        if instance not in self.instances:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"no instance '{instance}'")

    def _end(self) -> None:
        with self._guard:
            self._at_once -= 1

    def _capabilities(self, data: bytes, context: Any) -> bytes:
        request = parse("GetCapabilitiesRequest", data)
        self._begin("GetCapabilities", context, request.instance_name)
        answer = message_class("ServerCapabilities")()
        answer.cache_capabilities.digest_functions.extend(self.functions)
        answer.cache_capabilities.action_cache_update_capabilities.update_enabled = self.writable
        answer.cache_capabilities.max_batch_total_size_bytes = self.batch
        answer.execution_capabilities.exec_enabled = self.engine is not None
        answer.low_api_version.major = answer.high_api_version.major = 2
        answer.high_api_version.minor = 3
        return bytes(answer.SerializeToString())

    def _get_result(self, data: bytes, context: Any) -> bytes:
        request = parse("GetActionResultRequest", data)
        self._begin("GetActionResult", context, request.instance_name)
        found = self.results.get(request.action_digest.hash)
        if found is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such result")
        return found or b""

    def _update_result(self, data: bytes, context: Any) -> bytes:
        request = parse("UpdateActionResultRequest", data)
        self._begin("UpdateActionResult", context, request.instance_name)
        if not self.writable:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "you may not write results")
        self.results[request.action_digest.hash] = request.action_result
        return bytes(request.action_result)

    def _find_missing(self, data: bytes, context: Any) -> bytes:
        request = parse("FindMissingBlobsRequest", data)
        self._begin("FindMissingBlobs", context, request.instance_name)
        answer = message_class("FindMissingBlobsResponse")()
        lacking = [d for d in request.blob_digests if d.hash not in self.blobs]
        answer.missing_blob_digests.extend(lacking)
        return bytes(answer.SerializeToString())

    def _batch_read(self, data: bytes, context: Any) -> bytes:
        request = parse("BatchReadBlobsRequest", data)
        self._begin("BatchReadBlobs", context, request.instance_name)
        answer = message_class("BatchReadBlobsResponse")()
        for digest in request.digests:
            blob = answer.responses.add(digest=digest)
            if digest.hash in self.blobs:
                blob.data = self.blobs[digest.hash]
            else:
                blob.status.code = grpc.StatusCode.NOT_FOUND.value[0]
        assert not self.batch or answer.ByteSize() <= self.batch, "more than the server allows"
        return bytes(answer.SerializeToString())

    def _batch_update(self, data: bytes, context: Any) -> bytes:
        request = parse("BatchUpdateBlobsRequest", data)
        self._begin("BatchUpdateBlobs", context, request.instance_name)
        assert not self.batch or request.ByteSize() <= self.batch, "more than the server allows"
        answer = message_class("BatchUpdateBlobsResponse")()
        for blob in request.requests:
            updated = answer.responses.add(digest=blob.digest)
            if Digest.of(blob.data) == Digest(blob.digest.hash, blob.digest.size_bytes):
                self.blobs[blob.digest.hash] = blob.data
            else:
                updated.status.code = grpc.StatusCode.INVALID_ARGUMENT.value[0]
        return bytes(answer.SerializeToString())

    def _read(self, data: bytes, context: Any) -> Iterator[bytes]:
        name = parse("ReadRequest", data).resource_name
        instance, _, rest = name.rpartition("blobs/")
        self._begin("Read", context, instance.strip("/"))
        found = self.blobs.get(rest.partition("/")[0])
        if found is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such blob")
        assert found is not None
        for at in range(0, len(found), _CHUNK):
            yield bytes(
                message_class("ReadResponse")(data=found[at : at + _CHUNK]).SerializeToString()
            )

    def _write(self, stream: Iterator[bytes], context: Any) -> bytes:
        first = parse("WriteRequest", next(stream))
        instance, _, rest = first.resource_name.partition("uploads/")
        self._begin("Write", context, instance.strip("/"))
        _, kind, hash_, size = rest.split("/")
        assert kind == "blobs"
        data = bytearray(first.data)
        for message in stream:
            more = parse("WriteRequest", message)
            assert (more.resource_name, more.write_offset) == ("", len(data))
            data += more.data
            first = more
        assert first.finish_write
        if Digest.of(bytes(data)) != Digest(hash_, int(size)):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "another digest")
        self.blobs[hash_] = bytes(data)
        return bytes(message_class("WriteResponse")(committed_size=len(data)).SerializeToString())
