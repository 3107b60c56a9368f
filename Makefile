# make demo: set everything up and judge all tasks on this machine's CPU.
# make test: set everything up and run the test suite; CI runs exactly this.

PYTHON ?= python3
VENV   := .venv
READY  := $(VENV)/.ready

.PHONY: demo test setup lint bench clean

demo: setup
	$(VENV)/bin/kabuild test //tasks/...

# Each part in a process of its own: some load native libraries, which stay loaded.
TESTS  := tests/kabuild tests/conformance tests/test_layering.py tests/toolchains tests/tasks \
          tests/rules tests/cli tests/cheats tests/device

test: setup lint
	@for part in $(TESTS); do \
	  echo "$(VENV)/bin/python -m pytest $$part"; \
	  $(VENV)/bin/python -m pytest $$part || exit 1; \
	done

lint: setup
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

bench: setup
	for bench in tests/bench/bench_*.py; do $(VENV)/bin/python $$bench || exit 1; done

setup: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "kabuild needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean:
	rm -rf out $(VENV)
