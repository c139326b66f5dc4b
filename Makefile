# Everything runs in .venv, made on first use from any Python 3.11 or newer.
.DEFAULT_GOAL := help
.PHONY: help kernels demo test coverage lint format docs dist try-dist release image image-serve clean

VENV   := .venv
BIN    := $(VENV)/bin
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3.14 python3,$(shell command -v $(p) 2>/dev/null)))
INSTALLED := $(VENV)/.installed
READY  := $(VENV)/.ready
SITE   := $(VENV)/.docs
# One more than there are processors, since many tests wait for other processes.
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PLUGINS := $(filter-out $(wildcard examples/*/test_*.py),$(wildcard examples/*/*.py)) examples/moves.py

# Some images set it: each process that a test starts would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

help:
	@echo "make demo      compare placements of a bundled cluster"
	@echo "make test      run the tests"
	@echo "make coverage  run the tests and print how much of each file they ran"
	@echo "make lint      ruff and mypy --strict"
	@echo "make format    let ruff format the code"
	@echo "make docs      build the site in site/; a warning is an error"
	@echo "make kernels   compile the kernels, which the targets above do first where they need them"
	@echo "make dist      build sdist and wheel in dist/"
	@echo "make try-dist  install both in clean environments and run them"
	@echo "make release   build both in dist/ with bill of materials and checksums, and all wheels in build/wheels/"
	@echo "make image     build OCI images in build/image/: stowplan, and stowplan-serve (make image-serve) alone"

kernels: $(READY)

demo: $(READY)
	@$(BIN)/stowplan demo

test: $(READY)
	$(BIN)/pytest -q -n $(WORKERS) --maxprocesses 8 --dist worksteal

coverage: $(READY)
	$(BIN)/pytest -q -n $(WORKERS) --maxprocesses 8 --dist worksteal --cov --cov-report=term

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy $(PLUGINS)

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(SITE)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

dist: $(INSTALLED)
	rm -rf dist
	$(BIN)/hatchling build

try-dist: dist $(READY)
	.ci/try_dist

release: $(INSTALLED)
	.ci/release

# CPU= and KUBECTL= are those of deploy/image/build. The machine code is the image's own: no other is needed.
image: image-serve
	deploy/image/build stowplan build/image/stowplan

image-serve: $(INSTALLED)
	deploy/image/build stowplan-serve build/image/stowplan-serve

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* site dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find models plugins_compat optimizer instances plans stowplan tests benchmarks -type d -empty -delete

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "make: needs Python 3.11 or newer; name one with make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q && apt-get install -yq python3-venv; } || \
		{ echo "make: $(PYTHON) has no venv module; on Debian: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# Machine code of the kernels.
$(READY): $(INSTALLED)
	$(BIN)/python -m stowplan.optimizer.warm
	@touch $@

$(SITE): $(INSTALLED)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@
