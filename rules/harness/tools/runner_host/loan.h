// What libhipcpu.so offers to runners: the same as its runtime/hiding.h, which explains it.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct Piece {
  char* base;
  size_t bytes;
  int protection;
};

struct Loan {
  const Piece* all;
  const Piece* pieces;
  uint32_t all_count;
  uint32_t piece_count;
  bool hide;
  uint64_t most_copied;
  bool (*protect)(char* base, size_t bytes, int protection);
  void (*refuse)(uint64_t bytes);
};

using BeginCall = bool (*)(const Loan* loan);
using ExplainFault = int (*)(const void* address);
