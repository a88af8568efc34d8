# Every target sets up .venv by itself; `make help` lists them.
# A stamp says what .venv holds; it is out of date when the requirements change.

PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo check test lint bench docs clean faults
.DEFAULT_GOAL := help

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

demo: .venv/core.stamp  ## train on the built-in graph of Debian packages
	$(BIN)/gamlp train debian --method gamlp-recursive

check: .venv/dev.stamp  ## style, types and the quick tests, in about a minute
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

test: .venv/dev.stamp  ## run all tests
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: .venv/dev.stamp  ## check style and types, and the packages for known vulnerabilities
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python scripts/audit.py

bench: .venv/dev.stamp  ## measure propagation, a training step and embeddings, as JSON
	$(BIN)/python benchmarks/propagate.py --json
	$(BIN)/python benchmarks/train_step.py --json
	$(BIN)/python benchmarks/embed.py --json --repeat 2

faults: .venv/dev.stamp  ## kill, starve and corrupt everything; figures go to docs/reliability.md
	$(BIN)/python tests/faults/report.py

docs: .venv/docs.stamp  ## build the documentation into build/site
	$(BIN)/mkdocs build --strict --site-dir build/site

clean:  ## remove the environment, builds and caches; results in runs/ stay
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 is needed: make PYTHON=...")'
	$(PYTHON) -m venv .venv

.venv/core.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e .
	@touch $@

.venv/dev.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[dev,pyg,duckdb,onnx,ray,tune,tensorboard,serve]'
	@touch $@ .venv/core.stamp

.venv/docs.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[docs]'
	@touch $@
