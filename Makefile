# Two commands are enough: `make demo` and `make test`. Both set up everything they need in .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CONSTRAINTS := constraints.txt
# What the tests install. Spark is large, so only CI adds it: make test EXTRAS=dev,evaluation,postgres,server,spark-connect
EXTRAS ?= dev,evaluation,postgres,server
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS)
comma  := ,
DEV    := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))
# Python keeps what it compiles, whatever the environment says: tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo serve test quick check bench bench-quick wheel clean
.DEFAULT_GOAL := help

help:  ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Idios needs Python 3.11 or newer; run e.g. 'make PYTHON=python3.11 $(MAKECMDGOALS)'"; exit 1; }
	@echo "setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -f $@; exit 1; }  # else the next run takes it for whole

$(VENV)/.runtime: $(BIN)/python pyproject.toml $(CONSTRAINTS)
	@$(PIP) -e .
	@touch $@

$(DEV): $(BIN)/python pyproject.toml $(CONSTRAINTS)
	@$(PIP) -e '.[$(EXTRAS)]'
	@touch $@ $(VENV)/.runtime

demo: $(VENV)/.runtime  ## a trusted party answers a handful of questions
	@$(BIN)/idios demo

serve: $(BIN)/python  ## the server and its console, on generated people
	@$(PIP) -e '.[server]'
	@$(BIN)/idios serve --demo

test: $(DEV)  ## all tests
	@$(BIN)/python -m pytest -n auto --dist loadgroup -q

quick: $(DEV)  ## what needs no service, in a few minutes: for the loop of daily work
	@$(BIN)/python -m pytest -n auto --dist loadgroup -q -m 'not service and not slow and not statistical'

check: $(DEV)  ## format, lint, types, import layers, documentation, the size of the house
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q --doctest-modules --doctest-ignore-import-errors -m 'not slow' src tests/test_docs.py tests/test_house.py

bench: $(DEV)  ## ratios against plain tools and peers, written to docs/benchmarks.md
	@$(PIP) -e '.[bench]'
	@$(BIN)/python -m bench

bench-quick: $(DEV)  ## the same from less data, to the terminal
	@$(PIP) -e '.[bench]'
	@$(BIN)/python -m bench --quick

wheel: $(DEV)  ## build the distribution into dist/
	@$(BIN)/python -m build --outdir dist .

clean:  ## remove what the other targets made
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
