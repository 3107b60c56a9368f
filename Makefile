# make demo: set everything up and judge all tasks on this machine's CPU.
# make test: set everything up and run the test suite; CI runs exactly this.

PYTHON ?= python3
VENV   := .venv
READY  := $(VENV)/.ready
PIP     = $(VENV)/bin/python -m pip install --disable-pip-version-check --no-compile

# On the machines that it is for, the very wheels that results/cpu was published with; PyTorch's is
# for processors. `make setup PINNED=` gets what PyPI has instead: PyTorch for GPUs.
PINNED ?= toolchains/python/requirements.txt
# Only torch is asked of a second index: where that is out of reach, pip tries again and again.
TORCH  := --retries 1 --extra-index-url https://download.pytorch.org/whl/cpu
IS_FOR := import platform, sys; sys.exit([sys.implementation.cache_tag, platform.machine(), \
          platform.libc_ver()[0]] != ["cpython-311", "x86_64", "glibc"])
# pip would compile one file after another. Left out is what is for another Python's syntax, and
# what nobody imports: sources of what is installed compiled, and of Zig's own libraries.
COMPILE = $(VENV)/bin/python -m compileall -qq -j 0 \
          -x '/tests/|/testing/_internal/|/site-packages/(mypy|ziglang/lib)/'
# Unpacked while all the others are looked up.
LARGE  := ^(triton|ziglang)==
# Whether that can be had here at all; whether it is the right one is for --require-hashes to say.
OFFERED = [ -n "$(PINNED)" ] && $(PYTHON) -c '$(IS_FOR)' && \
          $(PIP) -qq --dry-run --no-deps $(TORCH) $$(grep -o '^torch==[^ ]*' $(PINNED))

.PHONY: demo test setup lint bench clean

demo: setup
	$(VENV)/bin/kabuild test //tasks/...

# Each part in a process of its own: some load native libraries, which stay loaded. Cheats that lie
# about time are told from a busy machine's noise where nothing else runs; the others go in pairs.
tests-cli-1 := $(wildcard tests/cli/test_[a-h]*.py)
tests-cli-2 := $(filter-out $(tests-cli-1),$(wildcard tests/cli/test_*.py))
tests-untimed-cheats := tests/cheats -m untimed
PARTS := tests-cli-1 tests-cli-2 tests/rules tests/toolchains tests-untimed-cheats tests/kabuild \
         tests/tasks tests/conformance tests/device tests/test_layering.py

test: setup
	$(VENV)/bin/python -m pytest tests/cheats -m 'not untimed'
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint $(PARTS)

.PHONY: $(PARTS)
$(PARTS):
	$(VENV)/bin/python -m pytest $(or $($@),$@)

lint: setup
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

bench: setup
	for bench in tests/bench/bench_*.py; do $(VENV)/bin/python $$bench || exit 1; done

setup: $(READY)

$(READY): pyproject.toml $(PINNED)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "kabuild needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@if $(OFFERED); then set -ex; \
	  grep '^torch==' $(PINNED) | $(PIP) -qq --no-deps --require-hashes $(TORCH) -r /dev/stdin; \
	  $(COMPILE) $(VENV)/lib & \
	  grep -E '$(LARGE)' $(PINNED) | $(PIP) -q --no-deps --require-hashes -r /dev/stdin & large=$$!; \
	  grep -vE '$(LARGE)|^torch==' $(PINNED) | $(PIP) -q --no-deps --require-hashes -r /dev/stdin; \
	  wait $$large; wait; \
	  $(PIP) -q --no-deps --no-build-isolation --editable .; \
	  $(VENV)/bin/python -m pip check; \
	else set -x; $(PIP) -q --editable '.[dev]'; fi
	@$(COMPILE) $(VENV)/lib || true
	@$(COMPILE) kabuild rules toolchains tests/testkit || true
	@touch $@

clean:
	rm -rf out $(VENV)
