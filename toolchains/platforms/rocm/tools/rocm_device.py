"""AMD's devices, as the judge and its runners use them.

That HIP's functions exist, and what they say where no device is, has been tried with AMD's
library. Nothing here has run on an AMD device yet.
"""

from __future__ import annotations

from base.device_platform import DevicePlatform, DriverLibrary

PLATFORM = DevicePlatform(
    name="rocm",
    maker="AMD",
    driver=DriverLibrary(
        # A library that torch brings is loaded already, and found by its name.
        ("libamdhip64.so.7", "libamdhip64.so.6"),
        "hip",
        {
            "cuDeviceGetCount": "hipGetDeviceCount",
            "cuDriverGetVersion": "hipRuntimeGetVersion",
            "cuMemcpy2DAsync_v2": "hipMemcpyParam2DAsync",
        },
        brought_by="torch",
        descriptors_by_value=70100000,
    ),
    torch_device="cuda",  # PyTorch for ROCm keeps CUDA's name
    torch_version="hip",
    out_of_memory=("HIP out of memory", "HIP error: out of memory"),
    device_files=("kfd", "dri/renderD*"),
    descriptions=("class/kfd", "devices/virtual/kfd", "class/drm", "dev/char", "module/amdgpu"),
    variables=("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"),
    # The Infinity Cache of AMD's largest processors, behind the cache that their runtime reports.
    least_cache_bytes=256 << 20,
    triton_utilities=("triton.backends.amd.driver", "HIPUtils"),
)
