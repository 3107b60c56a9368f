"""What host code may use of the C++ library, and what it is told of the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.toolchains.hip.support import Driver

USES = """
#include <algorithm>
#include <functional>
#include <hip/hip_runtime.h>
#include <map>
#include <memory>
#include <queue>
#include <stdio.h>
#include <unordered_map>
#include <vector>

struct Plan {
  virtual int blocks() const = 0;
  virtual ~Plan() {}
};
struct Wide : Plan {
  explicit Wide(int n) : n(n) {}
  int blocks() const override { return (n + 255) / 256; }
  int n;
};
struct Said {
  std::vector<int> kept;
  ~Said() { printf("kept %d\\n", int(kept.size())); fflush(stdout); }
};
struct Line { alignas(64) float at[16]; };

static Said said;
static std::map<int, int> seen;
static std::unordered_map<int, std::shared_ptr<Plan>> plans;

extern "C" int use(int n) {
  static std::vector<int> calls;
  thread_local std::vector<int> mine;
  calls.push_back(n);
  mine.push_back(n);
  said.kept.push_back(n);
  seen[n] += 1;
  if (!plans[n]) plans[n] = std::make_shared<Wide>(n);
  std::weak_ptr<Plan> watched = plans[n];
  float* values = new float[n];
  for (int i = 0; i < n; ++i) values[i] = float((i * 7) % n);
  std::sort(values, values + n);
  std::vector<int> order(n);
  for (int i = 0; i < n; ++i) order[i] = n - i;
  std::sort(order.begin(), order.end());
  std::unique_ptr<Line[]> lines(new Line[2]);
  const bool aligned = reinterpret_cast<uintptr_t>(lines.get()) % 64 == 0;
  std::function<int(int)> add = [&](int by) { return order[0] + by; };
  std::priority_queue<int> most;
  for (int value : order) most.push(value);
  int right = values[0] == 0 && values[n - 1] == float(n - 1) && aligned && add(1) == 2 &&
              most.top() == n && watched.lock()->blocks() == (n + 255) / 256;
  delete[] values;
  return right * 1000 + int(calls.size()) * 100 + int(mine.size()) * 10 + seen[n];
}

extern "C" int read_beyond(int n) {
  std::vector<int> few(2);
  return few.at(n);
}
"""
TRIES = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
print(library.use(701), library.use(5), library.use(701))
sys.stdout.flush()
if len(sys.argv) > 2:
    library.read_beyond(9)
"""


@pytest.fixture(scope="module")
def built(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of ``USES``."""
    folder = tmp_path_factory.mktemp("library")
    source, library = folder / "kernel.hip", folder / "kernel.so"
    source.write_text(USES)
    driver.build("kernel", source, "-o", library)
    return library


def tried(library: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", TRIES, str(library), *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_containers_static_objects_and_virtual_functions_work(built: Path) -> None:
    ran = tried(built)

    assert (ran.returncode, ran.stdout) == (0, "1111 1221 1332\nkept 3\n"), ran.stderr


def test_what_would_be_an_exception_ends_the_process_with_a_line(built: Path) -> None:
    ran = tried(built, "beyond")

    assert ran.returncode == -6
    assert "vector" in ran.stderr


def test_what_needs_more_of_the_library_is_refused_by_name(driver: Driver, tmp_path: Path) -> None:
    source = tmp_path / "kernel.hip"
    source.write_text(
        '#include <string>\nextern "C" int f(int n) {\n'
        '  std::string s("x");\n  s.append(n, 0);\n  return s.size();\n}\n'
    )

    refused = driver.refuse(source)

    assert (
        "undefined symbol 'std::string': neither the source, HIP nor the usable libc defines it"
        in refused
    )
