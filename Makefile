# Every command of the project; `make` lists them. Each target sets itself up first.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ARGS ?=

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

.PHONY: setup
setup: $(READY) ## create .venv and install everything
$(READY): pyproject.toml participant/pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Ferret needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  --editable './participant[train,hub]' --editable '.[dev]'
	@touch $@

.PHONY: demo
demo: setup ## run the whole service with a small experiment; ARGS="--once --json" runs to the end
	$(BIN)/ferret demo $(ARGS)

.PHONY: serve
serve: setup ## run the service in this folder's .ferret
	$(BIN)/ferret serve --home .ferret $(ARGS)

.PHONY: doctor
doctor: setup ## say what is missing and how to mend it
	$(BIN)/ferret doctor $(ARGS)

.PHONY: test
# Three at once on two cores: many tests wait for the processes they started.
test: check web-check ## everything that can run here: checks, then all tests
	$(BIN)/pytest -n 3 --dist loadgroup $(ARGS)

.PHONY: chaos
chaos: setup ## kill everything 200 times over 60 rounds, on SQLite and on PostgreSQL; at most an hour
	$(BIN)/python -m tests.chaos.storm --leases 2 $(ARGS)

.PHONY: check
check: setup ## format, lint, types, import rules, committed openapi.json
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m api.openapi --check

.PHONY: format
format: setup ## rewrite files in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: openapi
openapi: setup ## write openapi.json and the dashboard's types from the API
	$(BIN)/python -m api.openapi
	@if command -v npm >/dev/null; then cd web && npm ci --silent && npm run types; fi

.PHONY: web
web: setup ## build the dashboard into api/static (needs Node 20)
	cd web && npm ci --silent && npm run build

.PHONY: web-check
web-check: setup ## lint and test the dashboard, and see that its committed build is fresh
	@if command -v npm >/dev/null; then cd web && npm ci --silent && npm run check && npm run stale; \
	elif [ "$${CI:-}" = true ]; then echo 'CI needs Node 20 with npm' >&2; exit 1; \
	else echo 'skipped the dashboard checks: no npm on PATH'; fi

.PHONY: clean
clean: ## remove what the other commands made
	rm -rf $(VENV) web/node_modules .pytest_cache .ruff_cache .hypothesis .ferret
