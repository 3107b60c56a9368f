// Grids, blocks, templates, namespaces, dynamic shared memory, symbols: how kernels are launched.
#include <hip/hip_runtime.h>

__constant__ float coefficients[4];
__device__ int counter;

namespace numbers {
template <typename T>
__global__ void fill(T* out, T value, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = value;
}
}  // namespace numbers

template <int Tile>
__global__ __launch_bounds__(Tile) void reverse_tiles(const int* in, int* out) {
  __shared__ int tile[Tile];
  const int base = blockIdx.x * Tile;
  tile[threadIdx.x] = in[base + threadIdx.x];
  __syncthreads();
  out[base + threadIdx.x] = tile[Tile - 1 - threadIdx.x];
}

__global__ void number_all(int* out) {
  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const int threads = blockDim.x * blockDim.y * blockDim.z;
  __syncthreads();
  out[block * threads + thread] = block * 10000 + thread;
}

__global__ void reverse_block(int* data) {
  extern __shared__ int buffer[];
  buffer[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}

__global__ void reverse_bytes(float* data) {
  extern __shared__ __align__(16) unsigned char raw[];
  float* buffer = reinterpret_cast<float*>(raw);
  buffer[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}

__global__ void reverse_macro(float* data) {
  HIP_DYNAMIC_SHARED(float, buffer)
  buffer[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}

__global__ void transpose_rows(int* data) {
  extern __shared__ int rows[][8];
  rows[threadIdx.y][threadIdx.x] = data[threadIdx.y * 8 + threadIdx.x];
  __syncthreads();
  data[threadIdx.y * 8 + threadIdx.x] = rows[threadIdx.x][threadIdx.y];
}

__global__ void apply_coefficients(float* out) {
  out[threadIdx.x] = coefficients[threadIdx.x % 4];
  atomicAdd(&counter, 1);
}

__global__ void add_optional(int* out, const int* addend) {
  out[threadIdx.x] += addend != nullptr ? addend[threadIdx.x] : 1;
}

__global__ void store_vector(float4* out, float4 value, int2 offset) {
  out[threadIdx.x] = value * 2.0f + make_float4(offset.x, offset.y, 0, threadIdx.x);
}

#define LAUNCH_FILL(T, out, value, n) \
  numbers::fill<T><<<((n) + 63) / 64, 64>>>(out, value, n)

extern "C" {

hipError_t launch_fill(float* out, float value, int n, hipStream_t stream) {
  numbers::fill<float><<<(n + 255) / 256, 256, 0, stream>>>(out, value, n);
  return hipGetLastError();
}

hipError_t launch_fill_from_macro(int* out, int value, int n) {
  LAUNCH_FILL(int, out, value, n);
  return hipGetLastError();
}

hipError_t launch_fill_deduced(double* out, double value, int n) {
  hipLaunchKernelGGL(numbers::fill, dim3((n + 63) / 64), dim3(64), 0, 0, out, value, n);
  return hipGetLastError();
}

hipError_t launch_reverse_tiles(const int* in, int* out, int tiles) {
  hipLaunchKernelGGL(HIP_KERNEL_NAME(reverse_tiles<128>), dim3(tiles), dim3(128), 0, 0, in, out);
  return hipGetLastError();
}

hipError_t launch_number_all(int* out, const unsigned* grid, const unsigned* block) {
  number_all<<<dim3(grid[0], grid[1], grid[2]), dim3(block[0], block[1], block[2])>>>(out);
  return hipGetLastError();
}

hipError_t launch_reverse_block(int* data, int n) {
  reverse_block<<<1, n, n * sizeof(int)>>>(data);
  return hipGetLastError();
}

hipError_t launch_reverse_bytes(float* data, int n) {
  reverse_bytes<<<1, n, n * sizeof(float), nullptr>>>(data);
  return hipGetLastError();
}

hipError_t launch_reverse_macro(float* data, int n) {
  reverse_macro<<<1, n, n * sizeof(float)>>>(data);
  return hipGetLastError();
}

hipError_t launch_transpose_rows(int* data) {
  transpose_rows<<<1, dim3(8, 8), 64 * sizeof(int)>>>(data);
  return hipGetLastError();
}

hipError_t launch_indirectly(int* data, int n) {
  void* arguments[] = {&data};
  return hipLaunchKernel(reinterpret_cast<const void*>(reverse_block), dim3(1), dim3(n),
                         arguments, n * sizeof(int), nullptr);
}

hipError_t launch_through_pointer(int* data, int n) {
  void (*kernel)(int*) = reverse_block;
  kernel<<<1, n, n * sizeof(int)>>>(data);
  return hipGetLastError();
}

hipError_t launch_null(int* out, int n) {
  add_optional<<<1, n>>>(out, NULL);
  return hipGetLastError();
}

hipError_t launch_vectors(float4* out, int n) {
  float4 value(1, 2, 3, 4);
  store_vector<<<1, n>>>(out, value, make_int2(10, 20));
  return hipGetLastError();
}

hipError_t use_symbols(float* out, const float* values, int* launched) {
  const int zero = 0;
  hipError_t error = hipMemcpyToSymbol(HIP_SYMBOL(coefficients), values, 4 * sizeof(float));
  if (error != hipSuccess) return error;
  error = hipMemcpyToSymbol(counter, &zero, sizeof zero);
  if (error != hipSuccess) return error;
  apply_coefficients<<<2, 64>>>(out);
  return hipMemcpyFromSymbol(launched, HIP_SYMBOL(counter), sizeof(int));
}

hipError_t overrun_symbol(const float* values) {
  return hipMemcpyToSymbol(coefficients, values, 5 * sizeof(float));
}

hipError_t launch_with(unsigned grid, unsigned block, size_t shared) {
  apply_coefficients<<<grid, block, shared>>>(nullptr);
  return hipGetLastError();
}

}
