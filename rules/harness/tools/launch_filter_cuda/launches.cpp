// Launches, and kernels that become part of graphs.
#include <string.h>

#include "../launch_filter/filter.h"
#include "../launch_filter/real.h"
#include "functions.h"

namespace {

constexpr int kKernelNode = 0;  // CU_GRAPH_NODE_TYPE_KERNEL
constexpr int kCapturing = 1;   // CU_STREAM_CAPTURE_STATUS_ACTIVE

bool is_capturing(Stream stream) {
  using Ask = Result (*)(Stream, int*);
  static const auto ask = reinterpret_cast<Ask>(real_function("cuStreamIsCapturing"));
  int status = 0;
  return ask != nullptr && ask(stream, &status) == kSuccess && status == kCapturing;
}

// The number of blocks of a grid with these three sizes.
uint64_t blocks_of(const Unsigned* sizes) { return uint64_t{sizes[0]} * sizes[1] * sizes[2]; }

// The result of a launch that `go` makes, if it is permitted.
template <typename Go>
Result launch(Function function, uint64_t blocks, Stream stream, Go go) {
  switch (decide(function, blocks)) {
    case kRefuse:
      return kNotPermitted;
    case kLeaveOut:  // a recorded graph is left out later, when it is launched
      return is_capturing(stream) ? go() : kSuccess;
    default:
      return go();
  }
}

Function function_of(const FirstKernelNode* params) { return params->function; }

Function function_of(const KernelNode* params) {
  return params->first.function != nullptr ? params->first.function : params->kernel;
}

const Unsigned* sizes_of(const FirstKernelNode* params) { return params->sizes; }

const Unsigned* sizes_of(const KernelNode* params) { return params->first.sizes; }

template <typename Params>
bool may_be_node(const Params* params) {
  return params == nullptr || may_be_in_graph(function_of(params), blocks_of(sizes_of(params)));
}

bool may_be_node(const NodeParams* params) {
  return params == nullptr || params->type != kKernelNode || may_be_node(&params->kernel);
}

uint64_t grid_blocks(int width, int height) {
  return width > 0 && height > 0 ? static_cast<uint64_t>(width) * static_cast<uint64_t>(height) : 0;
}

// CUlaunchConfig: seven sizes, then the stream.
Stream stream_of(const void* config) {
  Stream stream = nullptr;
  if (config != nullptr) memcpy(&stream, static_cast<const char*>(config) + 32, sizeof stream);
  return stream;
}

uint64_t config_blocks(const void* config) {
  return config == nullptr ? 0 : blocks_of(static_cast<const Unsigned*>(config));
}

}  // namespace

WRAP(cuLaunch)(Function f) {
  return launch(f, 1, nullptr, [&] { return REAL(cuLaunch, f); });
}

WRAP(cuLaunchGrid)(Function f, int width, int height) {
  return launch(f, grid_blocks(width, height), nullptr, [&] {
    return REAL(cuLaunchGrid, f, width, height);
  });
}

WRAP(cuLaunchGridAsync)(Function f, int width, int height, Stream stream) {
  return launch(f, grid_blocks(width, height), stream, [&] {
    return REAL(cuLaunchGridAsync, f, width, height, stream);
  });
}

WRAP(cuLaunchKernel)
(Function f, GRID, Unsigned shared, Stream stream, void** parameters, void** extra) {
  return launch(f, uint64_t{gx} * gy * gz, stream, [&] {
    return REAL(cuLaunchKernel, f, GRID_OF, shared, stream, parameters, extra);
  });
}

WRAP(cuLaunchKernel_ptsz)
(Function f, GRID, Unsigned shared, Stream stream, void** parameters, void** extra) {
  return launch(f, uint64_t{gx} * gy * gz, stream, [&] {
    return REAL(cuLaunchKernel_ptsz, f, GRID_OF, shared, stream, parameters, extra);
  });
}

WRAP(cuLaunchKernelEx)(const void* config, Function f, void** parameters, void** extra) {
  return launch(f, config_blocks(config), stream_of(config), [&] {
    return REAL(cuLaunchKernelEx, config, f, parameters, extra);
  });
}

WRAP(cuLaunchKernelEx_ptsz)(const void* config, Function f, void** parameters, void** extra) {
  return launch(f, config_blocks(config), stream_of(config), [&] {
    return REAL(cuLaunchKernelEx_ptsz, config, f, parameters, extra);
  });
}

WRAP(cuLaunchCooperativeKernel)
(Function f, GRID, Unsigned shared, Stream stream, void** parameters) {
  return launch(f, uint64_t{gx} * gy * gz, stream, [&] {
    return REAL(cuLaunchCooperativeKernel, f, GRID_OF, shared, stream, parameters);
  });
}

WRAP(cuLaunchCooperativeKernel_ptsz)
(Function f, GRID, Unsigned shared, Stream stream, void** parameters) {
  return launch(f, uint64_t{gx} * gy * gz, stream, [&] {
    return REAL(cuLaunchCooperativeKernel_ptsz, f, GRID_OF, shared, stream, parameters);
  });
}

WRAP(cuLaunchCooperativeKernelMultiDevice)
(DeviceLaunch* launches, Unsigned count, Unsigned flags) {
  Decision worst = kRun;
  for (Unsigned i = 0; i < count; ++i) {
    const Decision decision = decide(launches[i].function, blocks_of(launches[i].sizes));
    worst = decision > worst ? decision : worst;
  }
  if (worst == kRefuse) return kNotPermitted;
  if (worst == kLeaveOut) return kSuccess;
  return REAL(cuLaunchCooperativeKernelMultiDevice, launches, count, flags);
}

WRAP(cuGraphAddKernelNode)
(void** node, void* graph, void* const* after, size_t count, const FirstKernelNode* params) {
  if (!may_be_node(params)) return kNotPermitted;
  return REAL(cuGraphAddKernelNode, node, graph, after, count, params);
}

WRAP(cuGraphAddKernelNode_v2)
(void** node, void* graph, void* const* after, size_t count, const KernelNode* params) {
  if (!may_be_node(params)) return kNotPermitted;
  return REAL(cuGraphAddKernelNode_v2, node, graph, after, count, params);
}

WRAP(cuGraphAddNode)
(void** node, void* graph, void* const* after, size_t count, NodeParams* params) {
  if (!may_be_node(params)) return kNotPermitted;
  return REAL(cuGraphAddNode, node, graph, after, count, params);
}

WRAP(cuGraphAddNode_v2)
(void** node, void* graph, void* const* after, const void* edges, size_t count,
 NodeParams* params) {
  if (!may_be_node(params)) return kNotPermitted;
  return REAL(cuGraphAddNode_v2, node, graph, after, edges, count, params);
}

WRAP(cuGraphKernelNodeSetParams)(void* node, const FirstKernelNode* params) {
  if (!may_be_node(params)) return kNotPermitted;
  return REAL(cuGraphKernelNodeSetParams, node, params);
}

WRAP(cuGraphKernelNodeSetParams_v2)(void* node, const KernelNode* params) {
  if (!may_be_node(params)) return kNotPermitted;
  return REAL(cuGraphKernelNodeSetParams_v2, node, params);
}

WRAP(cuGraphNodeSetParams)(void* node, NodeParams* params) {
  if (!may_be_node(params)) return kNotPermitted;
  return REAL(cuGraphNodeSetParams, node, params);
}

WRAP(cuGraphExecKernelNodeSetParams)(void* exec, void* node, const FirstKernelNode* params) {
  if (!may_be_node(params)) return kNotPermitted;
  return REAL(cuGraphExecKernelNodeSetParams, exec, node, params);
}

WRAP(cuGraphExecKernelNodeSetParams_v2)(void* exec, void* node, const KernelNode* params) {
  if (!may_be_node(params)) return kNotPermitted;
  return REAL(cuGraphExecKernelNodeSetParams_v2, exec, node, params);
}

WRAP(cuGraphExecNodeSetParams)(void* exec, void* node, NodeParams* params) {
  if (!may_be_node(params)) return kNotPermitted;
  return REAL(cuGraphExecNodeSetParams, exec, node, params);
}

WRAP(cuGraphLaunch)(void* exec, Stream stream) {
  return decide_graph() == kRun ? REAL(cuGraphLaunch, exec, stream) : kSuccess;
}

WRAP(cuGraphLaunch_ptsz)(void* exec, Stream stream) {
  return decide_graph() == kRun ? REAL(cuGraphLaunch_ptsz, exec, stream) : kSuccess;
}
