# The verbs people use; CI uses the same ones. Each works as the first command in a fresh clone.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export MPLBACKEND := Agg

.PHONY: help setup demo test test-slow lint format bench figures clean

help:  ## list the verbs
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP)  ## make .venv and install everything into it

# Installing again happens only when a requirement or the package definition changes.
$(STAMP): requirements.txt requirements-dev.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is not installed; Python 3.11 is needed (set PYTHON=/path/to/python3.11)" >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

demo: setup  ## build the scenario, train both arms small and real, draw the curves (half an hour)
	$(BIN)/python -m sf_explore_go.cli.demo

test: setup lint  ## every quick test (under 10 minutes on 2 cores)
	$(BIN)/python -m pytest -m "not slow"

test-slow: setup  ## faults, soaks and other long tests (under 40 minutes)
	$(BIN)/python -m pytest -m slow

lint: setup  ## ruff, mypy and the order of the rooms; a finding fails the build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: setup  ## let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## speed, as ratios measured side by side in one run
	$(BIN)/sf-explore-go bench

figures: setup  ## draw every figure and table of docs/ again, from the numbers in docs/results
	PATH="$(CURDIR)/$(BIN):$$PATH" launch/figures.sh

clean:  ## remove .venv, caches and what demo drew
	rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis build dist *.egg-info demo_output
