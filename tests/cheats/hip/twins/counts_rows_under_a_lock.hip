// Prepares on the host with threads that share a mutex and a condition, and joins them all.
// passes: correctness unseen
#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <thread>
#include "softmax.h"

static std::mutex g_lock;
static int64_t g_rows;

static void* add_rows(void* rows) {
  std::lock_guard<std::mutex> held(g_lock);
  g_rows += *static_cast<int64_t*>(rows);
  return nullptr;
}

ENTRY {
  g_rows = 0;
  int64_t half = rows / 2, rest = rows - half;
  std::condition_variable counted;
  pthread_t one;
  if (pthread_create(&one, nullptr, add_rows, &half) != 0) return hipErrorUnknown;
  std::thread other([&] {
    add_rows(&rest);
    counted.notify_one();
  });
  {
    std::unique_lock<std::mutex> held(g_lock);
    counted.wait(held, [&] { return g_rows >= rest; });
  }
  pthread_join(one, nullptr);
  other.join();
  return honest(x, y, scale, g_rows, cols, stream);
}
