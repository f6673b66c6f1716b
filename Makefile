# Every target does its own set-up: Python 3.11 or newer, pip and make are all that is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint types contract unit simulate mutants format bench clean
SEEDS ?= 1000
FIRST ?= 1000000

demo: $(VENV)/.run
	$(BIN)/evenflow demo

test: lint types contract unit

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

contract: $(VENV)/.dev
	$(BIN)/lint-imports

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup -q

# A campaign of random schedules: make simulate SEEDS=10000 [FIRST=1]
simulate: $(VENV)/.dev
	$(BIN)/python tests/simulation/campaign.py --seeds $(SEEDS) --first $(FIRST)

# Break the protocol in every way of tests/mutants/mutants.py and see that a test notices
mutants: $(VENV)/.dev
	$(BIN)/python tests/mutants/run.py

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev
	$(BIN)/python -m bench core

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/.run: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
