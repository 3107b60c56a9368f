"""Threads in host code: those of C, and those of the C++ library."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest

from tests.toolchains.hip.support import Driver

THREADS = 8
COUNTS = """
#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <thread>

static std::mutex lock;
static std::recursive_mutex& again = *new std::recursive_mutex;
static int counted;

static void* count(void* number) {
  std::lock_guard<std::recursive_mutex> outer(again);
  std::lock_guard<std::recursive_mutex> inner(again);
  std::lock_guard<std::mutex> held(lock);
  for (int i = 0; i < 1000; ++i) counted = counted + *static_cast<int*>(number);
  return nullptr;
}

extern "C" int count_by_threads(int number) {
  counted = 0;
  pthread_t posix[THREADS];
  std::thread standard[THREADS];
  std::condition_variable changed;
  bool started = false;
  for (pthread_t& one : posix) {
    if (pthread_create(&one, nullptr, count, &number) != 0) return -1;
  }
  for (std::thread& one : standard) {
    one = std::thread([&] {
      {
        std::unique_lock<std::mutex> held(lock);
        changed.wait(held, [&] { return started; });
      }
      count(&number);
    });
  }
  {
    std::lock_guard<std::mutex> held(lock);
    started = true;
  }
  changed.notify_all();
  for (pthread_t one : posix) pthread_join(one, nullptr);
  for (std::thread& one : standard) one.join();
  return counted;
}
""".replace("THREADS", str(THREADS))
LOCKS = """
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void* count(void* number) {
  pthread_mutex_lock(&lock);
  *static_cast<int*>(number) += 1;
  pthread_mutex_unlock(&lock);
  return nullptr;
}
extern "C" int count_by_threads(int number) {
  pthread_t one;
  if (pthread_create(&one, nullptr, count, &number) != 0) return -1;
  pthread_join(one, nullptr);
  return number;
}
"""


def counted(library: Path, number: int) -> int:
    return int(ctypes.CDLL(str(library)).count_by_threads(number))


def test_threads_count_together_under_locks(driver: Driver, tmp_path: Path) -> None:
    source, library = tmp_path / "kernel.hip", tmp_path / "kernel.so"
    source.write_text(COUNTS)
    driver.build("kernel", source, "-o", library)

    assert counted(library, 3) == 2 * THREADS * 1000 * 3


@pytest.mark.skipif(shutil.which("g++") is None, reason="this machine has no g++")
def test_an_adopted_compiler_has_locks_and_threads_of_c(tmp_path: Path) -> None:
    source, library = tmp_path / "kernel.hip", tmp_path / "kernel.so"
    source.write_text(LOCKS)
    Driver("cxx:g++").build("kernel", source, "-o", library)

    assert counted(library, 3) == 4
