// The token whose exponential clock rings first: one number for each category, not each draw.
__global__ void race(const float* logits, const int64_t* seed, int32_t* token, int64_t cats,
                     int64_t draws) {
  const int64_t row = blockIdx.x;
  for (int64_t d = threadIdx.x; d < draws; d += blockDim.x) {
    float best = INFINITY;
    int32_t chosen = 0;
    for (int64_t c = 0; c < cats; ++c) {
      const uint64_t bits = mixed(mixed(*seed ^ mixed(row * draws + d)) + c);
      const float wait = logf(-logf(fraction(bits) + 0x1p-25f)) - logits[row * cats + c];
      if (wait < best) {
        best = wait;
        chosen = c;
      }
    }
    token[row * draws + d] = chosen;
  }
}

extern "C" hipError_t sample_f32(const float* logits, const int64_t* seed, int32_t* token,
                                 int64_t rows, int64_t cats, int64_t draws, hipStream_t stream) {
  race<<<rows, 128, 0, stream>>>(logits, seed, token, cats, draws);
  return hipGetLastError();
}
