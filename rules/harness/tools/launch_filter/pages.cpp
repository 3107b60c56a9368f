#include "pages.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

const Orders* g_orders;
Record* g_record;

void* map(int fd, size_t size, int protection) {
  void* address = mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
  close(fd);
  return address == MAP_FAILED ? nullptr : address;
}

}  // namespace

bool attach(int orders_fd, int record_fd) {
  const void* orders = map(orders_fd, sizeof(Orders), PROT_READ);
  void* record = map(record_fd, sizeof(Record), PROT_READ | PROT_WRITE);
  if (orders == nullptr || record == nullptr) return false;
  g_orders = static_cast<const Orders*>(orders);
  if (g_orders->magic != kOrdersMagic || g_orders->version != kPagesVersion) return false;
  g_record = static_cast<Record*>(record);
  g_record->version = kPagesVersion;
  g_record->magic = kRecordMagic;
  return true;
}

const Orders* orders() { return g_orders; }

Record* record() { return g_record; }

int note(const char* name, Kind kind) {
  const uint32_t index = g_record->noted;
  if (index >= kMostNoted) return -1;
  Noted* entry = &g_record->entries[index];
  entry->kind = kind;
  strncpy(entry->name, name, sizeof entry->name - 1);
  g_record->noted = index + 1;
  return static_cast<int>(index);
}
