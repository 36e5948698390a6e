# Every command works on a fresh machine with Python 3.11+ and make: what it needs is installed into .venv first.
#   make serve ARGS="--port 8123"    make chat    make test    make check    make bench    make proof
# The page in the browser is built with Node 20.19 or newer (of 22, 22.12), where that is installed.

PYTHON ?= python3
ARGS ?=
JOBS ?= 2
PARTS ?= kernels step_overhead launch streams quality chat voice page peers
VENV := .venv
CLIENTS := .venv-clients
BIN := $(VENV)/bin
ROOMS := engine kernels server spec web
PROJECT := pyproject.toml constraints.txt setup.py $(wildcard kernels/native/src/*)
PAGE := web/dist/index.html
# Folders too: theirs is the time at which a file was added or removed.
PAGE_SOURCES := web/index.html web/vite.config.ts web/tsconfig.json $(shell find web/build web/public web/src 2>/dev/null)
# What Vite runs on. The shell's answer is yes or no; NO_NODE says the latter.
NODE_FITS := command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split(".").map(Number); \
  process.exit((a === 20 && b >= 19) || (a === 22 && b >= 12) || a > 22 ? 0 : 1)' 2>/dev/null
NO_NODE = the page needs Node 20.19 or newer (of 22, 22.12) with npm, and this machine has $$(node --version 2>/dev/null || echo none)
# By another name than make's own, for which `make -n` would run the whole recipe.
BUILD_PAGE = $(MAKE) -s page
BUILD_TOOLS = $(MAKE) -s web/node_modules/.made

# Without the current folder on sys.path: transformers probes for a package named `kernels` and would find ours.
export PYTHONSAFEPATH := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help serve page-notice chat page wheel test clients check proof sanitize bench compile-table device-check view format clean
.DEFAULT_GOAL := help

help:
	@echo 'make serve   install, fetch the default model and serve it; ARGS="--port 8123" passes options on'
	@echo 'make chat    talk to the running server in the terminal'
	@echo 'make page    build the page in the browser, which make serve and make test do too; needs Node 20.19 or newer (of 22, 22.12)'
	@echo 'make wheel   build the page and the distributions that hold it, a wheel and its source, in dist/'
	@echo 'make test    run the tests, of the page and of the rest'
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

# A page that cannot be built keeps nobody from the API, nor from the page that was built before.
serve: page-notice $(VENV)/.runtime
	@if { $(NODE_FITS); }; then $(BUILD_PAGE) || echo "Serving without building the page, which failed as told above."; fi
	$(BIN)/paceline serve $(ARGS)

# Before the long installation, so that who wants the page can install Node first.
page-notice:
	@[ -e $(PAGE) ] || { $(NODE_FITS); } || echo "The API will be served without its page: $(NO_NODE)."

page:
	@{ $(NODE_FITS); } || { echo "Not built: $(NO_NODE)."; exit 1; }
	@$(MAKE) -s $(PAGE)

chat: $(VENV)/.runtime
	$(BIN)/paceline chat $(ARGS)

# All tests are run, though the page's fail: the last line is pytest's.
test: $(VENV)/.dev $(VENV)/.clients
	@page=0; \
	if { $(NODE_FITS); }; then $(BUILD_PAGE) && (cd web && npm test) || page=1; \
	else echo "Without tests of the page: $(NO_NODE)."; fi; \
	$(BIN)/pytest -n $(JOBS) --dist loadgroup $(ARGS) && exit $$page

check: $(VENV)/.dev view
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@if { $(NODE_FITS); }; then $(BUILD_TOOLS) && (cd web && npm run check); \
	else echo "Without checks of the page: $(NO_NODE)."; fi
	$(BIN)/pytest -q tests/test_architecture.py tests/test_packaging.py

# With the tools that are installed, not in an environment of its own: nothing more is downloaded.
wheel: $(VENV)/.dev page
	rm -rf build/lib*  # where pages of former builds lie
	$(BIN)/python -c 'from setuptools import build_meta as build; build.build_sdist("dist"); build.build_wheel("dist")'

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
	@if { $(NODE_FITS); }; then $(BUILD_TOOLS) && (cd web && npm run format); fi

# The rooms under their imported names. Pointing a type checker at engine/ itself would give every class two identities.
view:
	@mkdir -p .view/paceline
	@for room in $(ROOMS); do ln -sfn ../../$$room .view/paceline/$$room; done

clean:
	rm -rf $(VENV) $(CLIENTS) .view build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf web/dist web/node_modules
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

# npm empties the folder first, so what lies there afterwards was made from this very list.
web/node_modules/.made: web/package.json web/package-lock.json web/.npmrc
	@echo "Installing what the page is built with into web/node_modules; some 200 MB."
	@cd web && npm ci --loglevel=error
	@touch $@

$(PAGE): web/node_modules/.made $(PAGE_SOURCES)
	@cd web && npm run --silent build -- --logLevel warn

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
