# `make` names the targets. Needs python3 (3.11 or newer) with pip, and git.
PYTHON ?= python3
UV_VERSION := 0.13.9
UV := .uv/bin/uv
BIN := .venv/bin
PLUGINS := $(patsubst %/pyproject.toml,%,$(wildcard plugins/*/pyproject.toml))
PROJECTS := pyproject.toml $(patsubst %,%/pyproject.toml,cyrene_sdk $(PLUGINS))
READY := .venv/.ready
INSTALL := $(UV) pip install --python .venv --quiet --no-deps --no-build-isolation --compile-bytecode

# Without compiled bytecode every start of the host and of a worker takes twice as long.
unexport PYTHONDONTWRITEBYTECODE
export UV_PYTHON_DOWNLOADS := never

define NEWER_PYTHON
{ $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	echo "Cyrene needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
	echo "  mend:  name a newer one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }; }
endef

.DEFAULT_GOAL := help
.PHONY: help setup run check test lock clean

help:  ## name the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-6s %s\n", $$1, $$2}' Makefile

setup: $(READY)  ## make .venv with the locked packages and the distributions of this checkout

run: $(READY)  ## start the bundled plugins and call them
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh docs/tour.sh

check: $(READY)  ## format, lint and strict types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pyright
	cd tests/consumer && ../../$(BIN)/mypy --strict --config-file= --cache-dir=../../.mypy_cache/consumer .
	$(BIN)/pyright --project tests/consumer

test: check  ## check, then all tests with branch coverage
	rm -f .coverage .coverage.*
	$(BIN)/coverage run -m pytest -n 2
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

lock: $(UV) $(PROJECTS)  ## write requirements.lock anew, with the newest versions that fit
	$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --group dev \
		$(patsubst %,--no-emit-package %,$(shell sed -n 's/^name = "\(.*\)"/\1/p' $(PROJECTS))) \
		--custom-compile-command "make lock" --output-file requirements.lock $(PROJECTS)

clean:  ## remove what these targets made
	rm -rf .venv .uv .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(UV): Makefile
	@$(NEWER_PYTHON)
	@if [ "$$($(UV) --version 2>/dev/null | cut -d ' ' -f 2)" != "$(UV_VERSION)" ]; then \
		rm -rf .uv && $(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target .uv uv==$(UV_VERSION); fi
	@touch $(UV)

# `sync` removes what is not locked, so the distributions follow it: the SDK first, since a plugin's build uses its hook.
$(READY): requirements.lock $(PROJECTS) | $(UV)
	@[ -x $(BIN)/python ] || { $(NEWER_PYTHON) && $(UV) venv --quiet --python $(PYTHON) .venv; }
	$(UV) pip sync --python .venv --quiet --require-hashes --compile-bytecode requirements.lock
	$(INSTALL) --editable ./cyrene_sdk
	$(INSTALL) --editable . $(patsubst %,--editable ./%,$(PLUGINS))
	@$(BIN)/python -m compileall -q cyrene_host cyrene_sdk/cyrene_sdk $(PLUGINS)
	@touch $(READY)
