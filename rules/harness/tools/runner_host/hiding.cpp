// While a call runs with hidden memory, other calls' memory is hidden from all code. The call's own
// memory is hidden from host code only: the runtime shows it to kernels.
#include "../runner/hiding.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include "../runner/candidate.h"
#include "arena.h"
#include "loan.h"
#include "protection.h"

namespace {

// Honest host code reads back only counts, flags and sizes: at most one in kShareCopied bytes of
// the inputs. For tiny inputs kLeastCopied bytes are allowed.
constexpr uint64_t kLeastCopied = 1024;
constexpr uint64_t kShareCopied = 8;
constexpr uint64_t kUnbounded = UINT64_MAX / 2;
constexpr uint32_t kMostPieces = 2 * kMostTensors + 1;

BeginCall g_begin_call;
ExplainFault g_explain_fault;

const Buffers* g_buffers;  // of the guarded call; null if there is none
Refuse g_refuse;
Piece g_all[3];
Piece g_pieces[kMostPieces];
Loan g_loan;

void refuse(uint64_t bytes) { g_refuse(bytes, g_loan.most_copied); }

bool protect(const Piece& piece, int protection) {
  return protect_lent(piece.base, piece.bytes, protection);
}

uint64_t most_copied(const ControlBlock& block) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < block.inputs; ++i) bytes += block.tensors()[i].size;
  const uint64_t share = bytes / kShareCopied;
  return share < kLeastCopied ? kLeastCopied : share;
}

uint32_t add_pieces(const Arena& arena, uint32_t slot, int protection, Piece* pieces) {
  for (uint32_t i = 0; i < arena.count; ++i) {
    const Extent extent = extent_of(arena, slot, i);
    pieces[i] = {arena.mapping->base + extent.low, extent.high - extent.low, protection};
  }
  return arena.count;
}

uint32_t pieces_of(const Buffers& buffers, uint32_t slot, Piece* pieces) {
  uint32_t count = add_pieces(inputs_of(buffers), slot, PROT_READ, pieces);
  count += add_pieces(outputs_of(buffers), slot, PROT_READ | PROT_WRITE, pieces + count);
  if (buffers.workspace == nullptr) return count;
  const Tensor workspace = workspace_of(buffers);
  const Arena scratch = scratch_of(buffers, workspace);
  return count + add_pieces(scratch, 0, PROT_READ | PROT_WRITE, pieces + count);
}

bool hide_all() {
  bool ok = true;
  for (uint32_t i = 0; i < g_loan.all_count; ++i) ok = protect(g_all[i], PROT_NONE) && ok;
  return ok;
}

// Restores the protection that map_config set: with gaps, unless there would be too many.
void show_all() {
  const uint32_t slots = g_buffers->control()->slots;
  const bool gaps = has_gaps(inputs_of(*g_buffers), slots);
  if (!gaps || !has_gaps(outputs_of(*g_buffers), slots)) {
    for (uint32_t i = 0; i < g_loan.all_count; ++i) protect(g_all[i], g_all[i].protection);
    return;
  }
  for (uint32_t slot = 0; slot < slots; ++slot) {
    const uint32_t count = pieces_of(*g_buffers, slot, g_pieces);
    for (uint32_t i = 0; i < count; ++i) protect(g_pieces[i], g_pieces[i].protection);
  }
}

}  // namespace

void open_hiding(Refuse refusing) {
  g_refuse = refusing;
  g_begin_call = reinterpret_cast<BeginCall>(dlsym(RTLD_DEFAULT, "hipcpu_begin_call"));
  g_explain_fault = reinterpret_cast<ExplainFault>(dlsym(RTLD_DEFAULT, "hipcpu_explain_fault"));
}

bool begin_guarded_call(const Buffers* buffers, uint32_t slot, int64_t guarding) {
  if (guarding == 0 || g_begin_call == nullptr) return true;  // no runtime, so no device memory
  if (g_buffers != nullptr) g_begin_call(nullptr);
  g_buffers = buffers;
  g_all[0] = {buffers->inputs.base, buffers->inputs.size, PROT_READ};
  g_all[1] = {buffers->outputs.base, buffers->outputs.size, PROT_READ | PROT_WRITE};
  g_all[2] = {buffers->scratch.base, buffers->scratch.size, PROT_READ | PROT_WRITE};
  g_loan.all = g_all;
  g_loan.all_count = buffers->workspace == nullptr ? 2 : 3;
  g_loan.pieces = g_pieces;
  g_loan.piece_count = pieces_of(*buffers, slot, g_pieces);
  g_loan.hide = (guarding & protocol::kHide) != 0;
  const bool bound = (guarding & protocol::kBound) != 0;
  g_loan.most_copied = bound ? most_copied(*buffers->control()) : kUnbounded;
  g_loan.protect = protect_lent;
  g_loan.refuse = refuse;
  if (g_loan.hide && !hide_all()) return false;
  return g_begin_call(&g_loan);
}

void end_guarding() {
  if (g_buffers == nullptr) return;
  g_begin_call(nullptr);
  if (g_loan.hide) show_all();
  g_buffers = nullptr;
}

Met explain_fault(const void* address) {
  return g_explain_fault == nullptr ? Met::kNothing : static_cast<Met>(g_explain_fault(address));
}
