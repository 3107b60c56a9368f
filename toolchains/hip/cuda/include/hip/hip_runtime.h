// HIP for NVIDIA's processors: CUDA under HIP's names, with HIP's meaning where they differ.
#pragma once

#include <hip/hip_runtime_api.h>
#include <hipcuda/atomics.h>
#include <hipcuda/builtins.h>
#include <hipcuda/shared.h>
#include <hipcuda/vector_operators.h>
#include <hipcuda/wave.h>
