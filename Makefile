# Every command of the project; `make` lists them. Each target sets itself up first.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH ?=
ARGS ?=

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

# Installed when the lock has changed; tests in a browser read from it what they put into pages.
NODE_MODULES := web/node_modules/.package-lock.json
$(NODE_MODULES): web/package-lock.json
	@if command -v npm >/dev/null; then cd web && npm ci --silent && touch ../$@; fi

.PHONY: setup
setup: ## create .venv and install everything; TORCH=cpu or TORCH=cuda chooses the build of torch
	@$(PYTHON) -m scripts.setup --torch "$(TORCH)"

.PHONY: lock
lock: ## renew requirements*.txt after a change of pyproject.toml; ARGS=--upgrade takes newer versions
	@test -x $(BIN)/uv || { $(PYTHON) -m venv $(VENV) && $(BIN)/pip install -q "$$(grep -oE 'uv==[0-9.]+' pyproject.toml)"; }
	$(BIN)/python -m scripts.lock $(ARGS)

.PHONY: demo
demo: setup ## run the whole service with a small experiment; ARGS="--once --json" runs to the end
	$(BIN)/ferret demo $(ARGS)

.PHONY: edge-demo
edge-demo: setup ## five sites over TLS: one is killed, one late, one divergent, one revoked; ARGS=--secure sums under masks
	$(BIN)/ferret dev bench edge --bounds --json $(ARGS)

.PHONY: serve
serve: setup ## run the service in this folder's .ferret
	$(BIN)/ferret serve --home .ferret $(ARGS)

.PHONY: doctor
doctor: setup ## say what is missing and how to fix it
	$(BIN)/ferret doctor $(ARGS)

# Three at once on two cores: many tests wait for the processes they started.
PYTEST := $(BIN)/pytest -n 3 --dist loadgroup --durations 20

.PHONY: test
test: setup $(NODE_MODULES) ## every behaviour once: about twelve minutes on two cores
	$(PYTEST) $(ARGS)

.PHONY: test-fast
test-fast: setup ## the unit tests, which start no processes: a minute
	$(BIN)/pytest -n 2 --dist loadgroup --durations 20 --tier fast $(ARGS)

.PHONY: test-changed
test-changed: setup $(NODE_MODULES) ## what your changes can break; ARGS="--changed main" compares with another commit than HEAD
	$(PYTEST) --changed $(ARGS)

.PHONY: test-all
test-all: setup $(NODE_MODULES) ## all of them: every kill, race and storm, every algorithm, every benchmark; an hour and a half
	$(PYTEST) --tier all $(ARGS)

.PHONY: chaos
chaos: setup ## kill everything 200 times over 60 rounds, on SQLite and on PostgreSQL; at most an hour
	$(BIN)/python -m tests.chaos.storm --leases 2 $(ARGS)

.PHONY: api-results
api-results: setup ## measure the API under 10,000 participants for docs/results/hardening, on a machine that is idle
	$(BIN)/ferret dev bench api --json | $(BIN)/python -m ferret_bench._api_page docs/results/hardening

.PHONY: gpu
gpu: setup ## measure on a GPU what can be measured nowhere else; ARGS=--miniature runs it all small, on a processor
	$(BIN)/python -m ferret_bench.gpu $(ARGS)

.PHONY: gpu-wheels
gpu-wheels: setup ## fetch what a machine with a GPU and without an index lacks into .gpu-wheels; ARGS=--core leaves the service out
	@$(BIN)/python -m scripts.gpu_wheels $(ARGS)

.PHONY: screenshots
screenshots: setup ## make the pictures of docs/screenshots again, from the demo and the built dashboard
	$(BIN)/python docs/generator/screenshots.py $(ARGS)

SOURCES := ferret_core ferret_runtime ferret_db migrations ferret_sdk ferret_cli api worker bench scripts docs/generator
.PHONY: check
check: setup $(NODE_MODULES) ## format, lint, types, import rules, guard, prose, bandit, openapi.json, the lock, documentation site, dashboard
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyrefly check
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m scripts.guard
	$(BIN)/python -m scripts.prose
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive $(SOURCES)
	$(BIN)/python -m scripts.lock --check
	$(BIN)/python -m ferret_api.write_openapi --check
	$(BIN)/python docs/generator/build.py
	@if command -v npm >/dev/null; then cd web && npm run check && npm run stale; \
	elif [ "$${CI:-}" = true ]; then echo 'CI needs Node 20 with npm' >&2; exit 1; \
	else echo 'skipped the dashboard: no npm on PATH'; fi

.PHONY: audit
audit: setup ## known vulnerabilities of the locked dependencies; passes where the advisories cannot be reached
	$(BIN)/python -m scripts.audit

.PHONY: docs
docs: setup ## build the documentation site into site/html; a link that leads nowhere is an error
	$(BIN)/python docs/generator/build.py

.PHONY: release
release: setup ## write the wheels, their SBOM and SHA256SUMS to dist/; build the image where a container engine runs
	$(BIN)/python -m scripts.release $(ARGS)

.PHONY: format
format: setup ## rewrite files in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: openapi
openapi: setup $(NODE_MODULES) ## write openapi.json and the dashboard's types from the API
	$(BIN)/python -m ferret_api.write_openapi
	@if command -v npm >/dev/null; then cd web && npm run types; fi

.PHONY: web
web: setup $(NODE_MODULES) ## build the dashboard into api/ferret_api/static (needs Node 20)
	cd web && npm run build

.PHONY: clean
clean: ## remove what the other commands built; the service's data in .ferret stay
	rm -rf $(VENV) web/node_modules .pytest_cache .ruff_cache .hypothesis site dist .gpu-wheels
