// The host side of HIP: errors, device, memory, streams, events, launches.
#pragma once

#include <hipcpu/device.h>
#include <hipcpu/errors.h>
#include <hipcpu/launch.h>
#include <hipcpu/memory.h>
#include <hipcpu/stream.h>
#include <hipcpu/vector_types.h>
