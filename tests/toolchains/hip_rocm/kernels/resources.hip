// Kernels that take much of a processor in turn: nothing, vector registers, scalar registers that
// spill, static shared memory. No header, so that it compiles at once.
#define DEVICE __attribute__((device))
#define KERNEL extern "C" __attribute__((global))
#define SHARED __attribute__((shared))
#define BLOCK(most) __attribute__((amdgpu_flat_work_group_size(1, most)))

namespace {

DEVICE int thread() { return __builtin_amdgcn_workitem_id_x(); }

template <int count>
DEVICE void hold(float* x) {
  float held[count];
#pragma unroll
  for (int i = 0; i < count; ++i) held[i] = x[i * 1024 + thread()];
  __builtin_amdgcn_s_barrier();
#pragma unroll
  for (int i = 0; i < count; ++i) x[i * 1024 + thread()] = held[i] * held[count - 1 - i];
}

template <int count>
DEVICE void pass_round(float* x) {
  static SHARED float passed[count];
  passed[thread()] = x[thread()];
  __builtin_amdgcn_s_barrier();
  x[thread()] = passed[(thread() + 1) % count];
}

}  // namespace

KERNEL BLOCK(1024) void little(float* x) { x[thread()] = 1; }
KERNEL BLOCK(256) void vectors_40(float* x) { hold<40>(x); }
KERNEL BLOCK(256) void vectors_90(float* x) { hold<90>(x); }
KERNEL BLOCK(256) void vectors_150(float* x) { hold<150>(x); }
KERNEL BLOCK(256) void spilling(float* x, int n) {
  float held[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) held[i] = x[i * n];
#pragma unroll
  for (int i = 0; i < 96; ++i) x[i * 7 % 96 * n + 1] = held[i] * held[95 - i];
}
KERNEL BLOCK(256) void shared_24000(float* x) { pass_round<6000>(x); }
KERNEL BLOCK(256) void shared_6000(float* x) { pass_round<1500>(x); }
KERNEL BLOCK(1024) void shared_40000(float* x) { pass_round<10000>(x); }
KERNEL BLOCK(64) void shared_9000(float* x) { pass_round<2250>(x); }
