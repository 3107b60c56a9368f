"""HIP's error codes. CUDA numbers its own alike; the names are those of ``hip_runtime_api.h``."""

from __future__ import annotations

OUT_OF_MEMORY = 2
NAMES = {
    1: "InvalidValue",
    OUT_OF_MEMORY: "OutOfMemory",
    3: "NotInitialized",
    4: "Deinitialized",
    9: "InvalidConfiguration",
    12: "InvalidPitchValue",
    13: "InvalidSymbol",
    17: "InvalidDevicePointer",
    21: "InvalidMemcpyDirection",
    35: "InsufficientDriver",
    98: "InvalidDeviceFunction",
    100: "NoDevice",
    101: "InvalidDevice",
    200: "InvalidImage",
    201: "InvalidContext",
    209: "NoBinaryForGpu",
    214: "ECCNotCorrectable",
    400: "InvalidHandle",
    500: "NotFound",
    600: "NotReady",
    700: "IllegalAddress",
    701: "LaunchOutOfResources",
    702: "LaunchTimeOut",
    705: "PeerAccessNotEnabled",
    710: "Assert",
    712: "HostMemoryAlreadyRegistered",
    719: "LaunchFailure",
    720: "CooperativeLaunchTooLarge",
    801: "NotSupported",
    900: "StreamCaptureUnsupported",
    901: "StreamCaptureInvalidated",
    999: "Unknown",
}


def described(code: int) -> str:
    """A code for people: ``hipErrorInvalidValue (1)``; ``hipError_t 77`` for an unknown one."""
    return f"hipError{NAMES[code]} ({code})" if code in NAMES else f"hipError_t {code}"
