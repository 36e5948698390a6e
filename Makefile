# Every command works on a fresh machine with Python 3.11+ and make: what it needs is installed into .venv first.
#   make serve ARGS="--port 8123"    make chat    make test    make check    make bench    make proof

PYTHON ?= python3
ARGS ?=
JOBS ?= 2
PARTS ?= kernels step_overhead launch streams quality chat voice page peers
VENV := .venv
CLIENTS := .venv-clients
BIN := $(VENV)/bin
ROOMS := engine kernels server spec web
PROJECT := pyproject.toml constraints.txt setup.py $(wildcard kernels/native/src/*)

# Without the current folder on sys.path: transformers probes for a package named `kernels` and would find ours.
export PYTHONSAFEPATH := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help serve chat test clients check proof sanitize bench compile-table device-check view format clean
.DEFAULT_GOAL := help

help:
	@echo 'make serve   install, fetch the default model and serve it; ARGS="--port 8123" passes options on'
	@echo 'make chat    talk to the running server in the terminal'
	@echo 'make test    run the tests'
	@echo 'make clients run the tests with Pipecat and LiveKit, which are installed first into an environment of their own: 500 MB'
	@echo 'make check   format, lint, types and architecture'
	@echo 'make proof   run the slow proofs'
	@echo 'make sanitize  run the native tests on kernels built with the memory and thread sanitizers'
	@echo 'make bench   measure, and record the figures in tests/bench/results; PARTS="kernels peers" measures only these'
	@echo 'make compile-table  compile every GPU kernel without a GPU, and record registers, spills and shared memory'
	@echo 'make device-check  on a machine with an NVIDIA GPU: check its kernels, and record how fast they are; needs torch and triton'
	@echo 'make format  rewrite the sources in the one format'
	@echo 'make view    the tree of links that type checkers read'
	@echo 'make clean   remove the environment and all build products (fetched models stay in the cache)'

serve: $(VENV)/.runtime
	$(BIN)/paceline serve $(ARGS)

chat: $(VENV)/.runtime
	$(BIN)/paceline chat $(ARGS)

test: $(VENV)/.dev $(VENV)/.clients
	$(BIN)/pytest -n $(JOBS) --dist loadgroup $(ARGS)

check: $(VENV)/.dev view
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_architecture.py tests/test_packaging.py

clients: $(VENV)/.dev $(CLIENTS)/.made
	$(BIN)/pytest tests/clients/test_pipecat.py tests/clients/test_livekit.py $(ARGS)

proof: $(VENV)/.dev
	$(BIN)/pytest -m proof -n $(JOBS) $(ARGS)

sanitize: $(VENV)/.dev
	$(BIN)/python tests/kernels/native/sanitize.py

# One part after the other: two that measure at once measure each other.
bench: $(VENV)/.dev
	@for part in $(PARTS); do PYTHONPATH=tests/bench:tests/support $(BIN)/python tests/bench/$$part.py $(ARGS) || exit 1; done

# Needs no GPU: Triton compiles for sm_80, sm_90 and gfx942 anywhere. `make test` holds the kernels to what is recorded.
compile-table: $(VENV)/.dev
	PYTHONPATH=tests/bench $(BIN)/python tests/bench/compile_table.py $(ARGS)

# Nothing is installed: a machine that is lent for minutes has its own torch and Triton, maybe by a PYTHONPATH of its own.
device-check: view
	PYTHONPATH=.view:tests/bench:tests/support$${PYTHONPATH:+:$$PYTHONPATH} $(or $(DEVICE_PYTHON),$(wildcard $(BIN)/python),$(PYTHON)) tests/bench/device_check.py $(ARGS)

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The rooms under their imported names. Pointing a type checker at engine/ itself would give every class two identities.
view:
	@mkdir -p .view/paceline
	@for room in $(ROOMS); do ln -sfn ../../$$room .view/paceline/$$room; done

clean:
	rm -rf $(VENV) $(CLIENTS) .view build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find $(ROOMS) tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: a step runs again only when what it depends on is newer. A half-made environment is removed, never reused.
$(VENV)/.made:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "No '$(PYTHON)' on this machine: install Python 3.11 or newer, or name it: make PYTHON=/path/to/python3."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Paceline needs Python 3.11 or newer and '$(PYTHON)' is $$($(PYTHON) -V 2>&1): name another, as in make PYTHON=python3.12."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "The virtual environment could not be made: on Debian and Ubuntu install the package python3-venv."; exit 1; }
	@touch $@

$(VENV)/.runtime: $(PROJECT) | $(VENV)/.made
	@echo "Installing Paceline into $(VENV); the first time this downloads some hundred megabytes."
	@echo "Compiling the kernels, given a C++ compiler: two to five minutes, once."
	$(BIN)/pip install -c constraints.txt -e .
	@touch $@

# Clients of other languages that tests drive the server with; tests skip them where there is no npm.
$(VENV)/.clients: tests/clients/package.json tests/clients/package-lock.json | $(VENV)/.made
	@if command -v npm >/dev/null; then cd tests/clients && npm ci --no-audit --no-fund --silent; \
	else echo "npm is not installed (Node 20 or newer brings it): tests of JavaScript clients are skipped."; fi
	@touch $@

# Other people's large programs, which must not meddle with ours; their audio parts are left out.
$(CLIENTS)/.made: tests/clients/requirements.txt
	@echo "Installing Pipecat and LiveKit into $(CLIENTS)."
	@$(PYTHON) -m venv $(CLIENTS) || { rm -rf $(CLIENTS); exit 1; }
	$(CLIENTS)/bin/pip install --quiet --no-deps -r tests/clients/requirements.txt
	@touch $@

# Only what the extra `dev` names: installing '.[dev]' would compile the kernels again.
$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.runtime
	@echo "Installing the development tools into $(VENV)."
	@$(BIN)/python -c 'import tomllib; extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	  print(*extras["dev"], sep="\n")' > $(VENV)/dev.txt
	$(BIN)/pip install -c constraints.txt -r $(VENV)/dev.txt
	@touch $@
