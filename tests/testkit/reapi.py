"""Real protobuf classes for the REAPI messages we use, built from the spec's field numbers.

They say independently of kabuild's own encoder what the bytes mean. Only the fields that
kabuild uses are described; protobuf reports any other as unknown.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "build.bazel.remote.execution.v2"
_Field = descriptor_pb2.FieldDescriptorProto

# message -> field -> (number, type, repeated); a type that is no scalar names a message.
_MESSAGES: dict[str, dict[str, tuple[int, str, bool]]] = {
    "Digest": {"hash": (1, "string", False), "size_bytes": (2, "int64", False)},
    "Seconds": {"seconds": (1, "int64", False), "nanos": (2, "int32", False)},
    "FileNode": {
        "name": (1, "string", False),
        "digest": (2, "Digest", False),
        "is_executable": (4, "bool", False),
    },
    "DirectoryNode": {"name": (1, "string", False), "digest": (2, "Digest", False)},
    "Directory": {"files": (1, "FileNode", True), "directories": (2, "DirectoryNode", True)},
    "Tree": {"root": (1, "Directory", False), "children": (2, "Directory", True)},
    "Property": {"name": (1, "string", False), "value": (2, "string", False)},
    "Platform": {"properties": (1, "Property", True)},
    "EnvironmentVariable": {"name": (1, "string", False), "value": (2, "string", False)},
    "Command": {
        "arguments": (1, "string", True),
        "environment_variables": (2, "EnvironmentVariable", True),
        "platform": (5, "Platform", False),
        "working_directory": (6, "string", False),
        "output_paths": (7, "string", True),
    },
    "Action": {
        "command_digest": (1, "Digest", False),
        "input_root_digest": (2, "Digest", False),
        "timeout": (6, "Seconds", False),
        "do_not_cache": (7, "bool", False),
        "salt": (9, "bytes", False),
        "platform": (10, "Platform", False),
    },
    "OutputFile": {
        "path": (1, "string", False),
        "digest": (2, "Digest", False),
        "is_executable": (4, "bool", False),
    },
    "OutputDirectory": {"path": (1, "string", False), "tree_digest": (3, "Digest", False)},
    "ExecutedActionMetadata": {
        "worker": (1, "string", False),
        "worker_start_timestamp": (3, "Seconds", False),
        "worker_completed_timestamp": (4, "Seconds", False),
        "execution_start_timestamp": (7, "Seconds", False),
        "execution_completed_timestamp": (8, "Seconds", False),
    },
    "ActionResult": {
        "output_files": (2, "OutputFile", True),
        "output_directories": (3, "OutputDirectory", True),
        "exit_code": (4, "int32", False),
        "stdout_digest": (6, "Digest", False),
        "stderr_digest": (8, "Digest", False),
        "execution_metadata": (9, "ExecutedActionMetadata", False),
    },
    "Status": {"code": (1, "int32", False), "message": (2, "string", False)},
    "GetActionResultRequest": {
        "instance_name": (1, "string", False),
        "action_digest": (2, "Digest", False),
    },
    "UpdateActionResultRequest": {
        "instance_name": (1, "string", False),
        "action_digest": (2, "Digest", False),
        "action_result": (3, "bytes", False),  # kept byte for byte
    },
    "FindMissingBlobsRequest": {
        "instance_name": (1, "string", False),
        "blob_digests": (2, "Digest", True),
    },
    "FindMissingBlobsResponse": {"missing_blob_digests": (2, "Digest", True)},
    "BatchReadBlobsRequest": {
        "instance_name": (1, "string", False),
        "digests": (2, "Digest", True),
    },
    "ReadBlob": {
        "digest": (1, "Digest", False),
        "data": (2, "bytes", False),
        "status": (3, "Status", False),
    },
    "BatchReadBlobsResponse": {"responses": (1, "ReadBlob", True)},
    "UpdateBlob": {"digest": (1, "Digest", False), "data": (2, "bytes", False)},
    "BatchUpdateBlobsRequest": {
        "instance_name": (1, "string", False),
        "requests": (2, "UpdateBlob", True),
    },
    "UpdatedBlob": {"digest": (1, "Digest", False), "status": (2, "Status", False)},
    "BatchUpdateBlobsResponse": {"responses": (1, "UpdatedBlob", True)},
    "GetCapabilitiesRequest": {"instance_name": (1, "string", False)},
    "UpdateCapabilities": {"update_enabled": (1, "bool", False)},
    "CacheCapabilities": {
        "digest_functions": (1, "int32", True),
        "action_cache_update_capabilities": (2, "UpdateCapabilities", False),
        "max_batch_total_size_bytes": (4, "int64", False),
    },
    "SemVer": {"major": (1, "int32", False), "minor": (2, "int32", False)},
    "ExecutionCapabilities": {"exec_enabled": (2, "bool", False)},
    "ServerCapabilities": {
        "cache_capabilities": (1, "CacheCapabilities", False),
        "execution_capabilities": (2, "ExecutionCapabilities", False),
        "low_api_version": (4, "SemVer", False),
        "high_api_version": (5, "SemVer", False),
    },
    "ReadRequest": {"resource_name": (1, "string", False), "read_offset": (2, "int64", False)},
    "ReadResponse": {"data": (10, "bytes", False)},
    "WriteRequest": {
        "resource_name": (1, "string", False),
        "write_offset": (2, "int64", False),
        "finish_write": (3, "bool", False),
        "data": (10, "bytes", False),
    },
    "WriteResponse": {"committed_size": (1, "int64", False)},
    "ExecuteRequest": {
        "instance_name": (1, "string", False),
        "skip_cache_lookup": (3, "bool", False),
        "action_digest": (6, "Digest", False),
    },
    "WaitExecutionRequest": {"name": (1, "string", False)},
    "CancelOperationRequest": {"name": (1, "string", False)},
    "Any": {"type_url": (1, "string", False), "value": (2, "bytes", False)},
    "ExecuteOperationMetadata": {"stage": (1, "int32", False)},
    "ExecuteResponse": {
        "result": (1, "bytes", False),
        "cached_result": (2, "bool", False),
        "status": (3, "Status", False),
        "message": (5, "string", False),
    },
    "Operation": {
        "name": (1, "string", False),
        "metadata": (2, "Any", False),
        "done": (3, "bool", False),
        "error": (4, "Status", False),
        "response": (5, "Any", False),
    },
    "WireResult": {
        "output_files": (2, "OutputFile", True),
        "output_directories": (3, "OutputDirectory", True),
        "exit_code": (4, "int32", False),
        "stderr_raw": (7, "bytes", False),
    },
}
_SCALARS = {
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "bool": _Field.TYPE_BOOL,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
}


@cache
def message_class(name: str) -> Any:
    """The protobuf class of one message."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def parse(name: str, data: bytes) -> Any:
    """Parse ``data``; it must consist of known fields, in canonical bytes."""
    message = message_class(name).FromString(data)
    assert message.SerializeToString(deterministic=True) == data, "not the canonical bytes"
    stripped = message_class(name).FromString(data)
    stripped.DiscardUnknownFields()
    assert stripped == message, "fields that the specification does not have"
    return message


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(
        name="reapi_for_tests.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind, repeated) in fields.items():
            described = message.field.add(
                name=field,
                number=number,
                label=_Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL,
            )
            if kind in _SCALARS:
                described.type = _SCALARS[kind]
            else:
                described.type = _Field.TYPE_MESSAGE
                described.type_name = f".{_PACKAGE}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool
