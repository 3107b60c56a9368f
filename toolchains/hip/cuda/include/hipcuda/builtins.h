// The builtins of AMD's compiler that have a plain meaning on another processor.
#pragma once

#include <hipcuda/wave.h>

#define __builtin_amdgcn_readfirstlane(value) (::hipcuda::read_first_lane(value))
#define __builtin_amdgcn_readlane(value, source) (__shfl((value), (source)))
#define __builtin_amdgcn_ds_bpermute(address, value) (__shfl((value), (address) >> 2))
#define __builtin_amdgcn_wave_barrier() __syncwarp()
#define __builtin_amdgcn_wavefrontsize() (::hipcuda::kWaveSize)
#define __builtin_amdgcn_s_barrier() __syncthreads()
#define __builtin_amdgcn_fence(order, scope, ...) __threadfence()
#define __builtin_amdgcn_sched_barrier(mask) ((void)(mask))
#define __builtin_amdgcn_s_sleep(cycles) ((void)(cycles))
#define __builtin_amdgcn_s_setprio(priority) ((void)(priority))
#define __builtin_amdgcn_s_waitcnt(counters) ((void)(counters))
#define __builtin_amdgcn_rcpf(x) (__frcp_rn(x))
#define __builtin_amdgcn_rsqf(x) (rsqrtf(x))
#define __builtin_amdgcn_sqrtf(x) (sqrtf(x))
#define __builtin_amdgcn_exp2f(x) (exp2f(x))
#define __builtin_amdgcn_logf(x) (__log2f(x))
#define __builtin_amdgcn_fmed3f(x, y, z) \
  (fmaxf(fminf((x), (y)), fminf(fmaxf((x), (y)), (z))))

#define __builtin_nontemporal_load(address) (__ldcs(address))
#define __builtin_nontemporal_store(value, address) (__stcs((address), (value)))

/// Nanoseconds since the device started: HIP's clock of constant frequency.
HIPCUDA_DEVICE long long wall_clock64() {
  long long nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}
