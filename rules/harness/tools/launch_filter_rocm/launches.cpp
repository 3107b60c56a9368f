// Launches, and kernels that become part of graphs.
#include "../launch_filter/filter.h"
#include "../launch_filter/real.h"
#include "functions.h"

namespace {

constexpr int kKernelNode = 0;  // hipGraphNodeTypeKernel
constexpr int kCapturing = 1;   // hipStreamCaptureStatusActive
constexpr uint64_t kMany = ~uint64_t{0};

bool is_capturing(Stream stream) {
  using Ask = Result (*)(Stream, int*);
  static const auto ask = reinterpret_cast<Ask>(real_function("hipStreamIsCapturing"));
  int status = 0;
  return ask != nullptr && ask(stream, &status) == kSuccess && status == kCapturing;
}

uint64_t blocks_of(Dim3 grid) { return uint64_t{grid.x} * grid.y * grid.z; }

uint64_t blocks_of(const Unsigned* sizes) { return uint64_t{sizes[0]} * sizes[1] * sizes[2]; }

// Blocks along one axis of a grid whose size is given in threads.
uint64_t blocks_along(Unsigned threads, Unsigned block) {
  return block == 0 ? 0 : (uint64_t{threads} + block - 1) / block;
}

// The result of a launch that `go` makes, if it is permitted.
template <typename Go>
Result launch(Function function, uint64_t blocks, Stream stream, Go go) {
  switch (decide(function, blocks)) {
    case kRefuse:
      return kNotSupported;
    case kLeaveOut:  // a recorded graph is left out later, when it is launched
      return is_capturing(stream) ? go() : kSuccess;
    default:
      return go();
  }
}

// The same for one launch on several devices.
template <typename Launch, typename Blocks, typename Go>
Result launch_each(const Launch* launches, uint64_t count, Blocks blocks, Go go) {
  Decision worst = kRun;
  for (uint64_t i = 0; i < count; ++i) {
    const Decision decision = decide(launches[i].function, blocks(launches[i]));
    worst = decision > worst ? decision : worst;
  }
  if (worst == kRefuse) return kNotSupported;
  return worst == kLeaveOut ? kSuccess : go();
}

uint64_t grid_of(const DeviceLaunch& each) { return blocks_of(each.grid); }

uint64_t grid_of_module(const ModuleDeviceLaunch& each) { return blocks_of(each.sizes); }

uint64_t count_of(int count) { return count > 0 ? static_cast<uint64_t>(count) : 0; }

bool may_be_node(const KernelNode* params) {
  return params == nullptr || may_be_in_graph(params->function, blocks_of(params->grid));
}

bool may_be_node(const NodeParams* params) {
  return params == nullptr || params->type != kKernelNode || may_be_node(&params->kernel);
}

Stream stream_of(const Config* config) { return config == nullptr ? nullptr : config->stream; }

uint64_t config_blocks(const Config* config) {
  return config == nullptr ? kMany : blocks_of(config->grid);
}

}  // namespace

// hipConfigureCall has set the grid, which is not known here.
WRAP(hipLaunchByPtr)(const void* f) {
  return launch(f, kMany, nullptr, [&] { return REAL(hipLaunchByPtr, f); });
}

WRAP(hipLaunchKernel)
(const void* f, Dim3 grid, Dim3 block, void** parameters, size_t shared, Stream stream) {
  return launch(f, blocks_of(grid), stream, [&] {
    return REAL(hipLaunchKernel, f, grid, block, parameters, shared, stream);
  });
}

WRAP(hipLaunchKernel_spt)
(const void* f, Dim3 grid, Dim3 block, void** parameters, size_t shared, Stream stream) {
  return launch(f, blocks_of(grid), stream, [&] {
    return REAL(hipLaunchKernel_spt, f, grid, block, parameters, shared, stream);
  });
}

WRAP(hipExtLaunchKernel)
(const void* f, Dim3 grid, Dim3 block, void** parameters, size_t shared, Stream stream,
 Event start, Event stop, int flags) {
  return launch(f, blocks_of(grid), stream, [&] {
    return REAL(hipExtLaunchKernel, f, grid, block, parameters, shared, stream, start, stop,
                flags);
  });
}

WRAP(hipLaunchKernelExC)(const Config* config, const void* f, void** parameters) {
  return launch(f, config_blocks(config), stream_of(config), [&] {
    return REAL(hipLaunchKernelExC, config, f, parameters);
  });
}

WRAP(hipDrvLaunchKernelEx)(const Config* config, Function f, void** parameters, void** extra) {
  return launch(f, config_blocks(config), stream_of(config), [&] {
    return REAL(hipDrvLaunchKernelEx, config, f, parameters, extra);
  });
}

WRAP(hipLaunchCooperativeKernel)
(const void* f, Dim3 grid, Dim3 block, void** parameters, Unsigned shared, Stream stream) {
  return launch(f, blocks_of(grid), stream, [&] {
    return REAL(hipLaunchCooperativeKernel, f, grid, block, parameters, shared, stream);
  });
}

WRAP(hipLaunchCooperativeKernel_spt)
(const void* f, Dim3 grid, Dim3 block, void** parameters, Unsigned shared, Stream stream) {
  return launch(f, blocks_of(grid), stream, [&] {
    return REAL(hipLaunchCooperativeKernel_spt, f, grid, block, parameters, shared, stream);
  });
}

WRAP(hipLaunchCooperativeKernelMultiDevice)
(DeviceLaunch* launches, int count, Unsigned flags) {
  return launch_each(launches, count_of(count), grid_of, [&] {
    return REAL(hipLaunchCooperativeKernelMultiDevice, launches, count, flags);
  });
}

WRAP(hipExtLaunchMultiKernelMultiDevice)(DeviceLaunch* launches, int count, Unsigned flags) {
  return launch_each(launches, count_of(count), grid_of, [&] {
    return REAL(hipExtLaunchMultiKernelMultiDevice, launches, count, flags);
  });
}

WRAP(hipModuleLaunchKernel)
(Function f, GRID, Unsigned shared, Stream stream, void** parameters, void** extra) {
  return launch(f, uint64_t{gx} * gy * gz, stream, [&] {
    return REAL(hipModuleLaunchKernel, f, GRID_OF, shared, stream, parameters, extra);
  });
}

WRAP(hipExtModuleLaunchKernel)
(Function f, GRID, size_t shared, Stream stream, void** parameters, void** extra, Event start,
 Event stop, Unsigned flags) {
  const uint64_t blocks = blocks_along(gx, bx) * blocks_along(gy, by) * blocks_along(gz, bz);
  return launch(f, blocks, stream, [&] {
    return REAL(hipExtModuleLaunchKernel, f, GRID_OF, shared, stream, parameters, extra, start,
                stop, flags);
  });
}

WRAP(hipHccModuleLaunchKernel)
(Function f, GRID, size_t shared, Stream stream, void** parameters, void** extra, Event start,
 Event stop) {
  const uint64_t blocks = blocks_along(gx, bx) * blocks_along(gy, by) * blocks_along(gz, bz);
  return launch(f, blocks, stream, [&] {
    return REAL(hipHccModuleLaunchKernel, f, GRID_OF, shared, stream, parameters, extra, start,
                stop);
  });
}

WRAP(hipModuleLaunchCooperativeKernel)
(Function f, GRID, Unsigned shared, Stream stream, void** parameters) {
  return launch(f, uint64_t{gx} * gy * gz, stream, [&] {
    return REAL(hipModuleLaunchCooperativeKernel, f, GRID_OF, shared, stream, parameters);
  });
}

WRAP(hipModuleLaunchCooperativeKernelMultiDevice)
(ModuleDeviceLaunch* launches, Unsigned count, Unsigned flags) {
  return launch_each(launches, count, grid_of_module, [&] {
    return REAL(hipModuleLaunchCooperativeKernelMultiDevice, launches, count, flags);
  });
}

WRAP(hipGraphAddKernelNode)
(void** node, void* graph, void* const* after, size_t count, const KernelNode* params) {
  if (!may_be_node(params)) return kNotSupported;
  return REAL(hipGraphAddKernelNode, node, graph, after, count, params);
}

WRAP(hipGraphAddNode)
(void** node, void* graph, void* const* after, size_t count, NodeParams* params) {
  if (!may_be_node(params)) return kNotSupported;
  return REAL(hipGraphAddNode, node, graph, after, count, params);
}

WRAP(hipGraphKernelNodeSetParams)(void* node, const KernelNode* params) {
  if (!may_be_node(params)) return kNotSupported;
  return REAL(hipGraphKernelNodeSetParams, node, params);
}

WRAP(hipGraphNodeSetParams)(void* node, NodeParams* params) {
  if (!may_be_node(params)) return kNotSupported;
  return REAL(hipGraphNodeSetParams, node, params);
}

WRAP(hipGraphExecKernelNodeSetParams)(void* exec, void* node, const KernelNode* params) {
  if (!may_be_node(params)) return kNotSupported;
  return REAL(hipGraphExecKernelNodeSetParams, exec, node, params);
}

WRAP(hipGraphExecNodeSetParams)(void* exec, void* node, NodeParams* params) {
  if (!may_be_node(params)) return kNotSupported;
  return REAL(hipGraphExecNodeSetParams, exec, node, params);
}

WRAP(hipGraphLaunch)(void* exec, Stream stream) {
  return decide_graph() == kRun ? REAL(hipGraphLaunch, exec, stream) : kSuccess;
}

WRAP(hipGraphLaunch_spt)(void* exec, Stream stream) {
  return decide_graph() == kRun ? REAL(hipGraphLaunch_spt, exec, stream) : kSuccess;
}
