// The host side of HIP: errors, device, memory, streams, events, launches.
#pragma once

#include <hipcuda/device.h>
#include <hipcuda/errors.h>
#include <hipcuda/launch.h>
#include <hipcuda/memory.h>
#include <hipcuda/platform.h>
#include <hipcuda/stream.h>
