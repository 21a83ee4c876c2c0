# Everything that is done to this project by hand. `make` alone explains itself.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON_IN := .venv/bin/python
CORE := .venv/.core-is-ready
FULL := .venv/.full-is-ready
INPUTS := pyproject.toml scripts/setup-environment $(wildcard setup.py constraints/*.txt) \
          $(shell find src -name '*.c' -o -name '*.h' -o -name '*.S' 2>/dev/null)

.PHONY: help demo test witness check quick format clean

help: ## List what can be made.
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

demo: $(FULL) build/axpy ## Estimate and count ResNet-18 on a photograph and explain the gap, then count a small C program.
	$(PYTHON_IN) -m flopwatch model resnet18 --measure --explain --image skimage:coffee
	$(PYTHON_IN) -m flopwatch stat --by symbol -- build/axpy

test: $(FULL) ## Run all tests, those of PyTorch and Chainer too.
	$(PYTHON_IN) -m pytest -m "not witness"

witness: $(FULL) ## Check the expected counts of the small programs by single steps (three quarters of an hour).
	$(PYTHON_IN) -m pytest -m witness

check: $(FULL) ## Check format, lint, types, then run all tests, the import order among them.
	$(PYTHON_IN) -m ruff format --check
	$(PYTHON_IN) -m ruff check
	$(PYTHON_IN) -m mypy
	$(PYTHON_IN) -m pytest -m "not witness"

quick: $(CORE) ## Run the tests that need no framework (a small download).
	$(PYTHON_IN) -m pytest -m "not torch and not chainer and not slow and not witness"

format: $(CORE) ## Format the code and mend what the linter can mend.
	$(PYTHON_IN) -m ruff format
	$(PYTHON_IN) -m ruff check --fix

clean: ## Remove the environment and everything that was built.
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
	find src tests -name __pycache__ -prune -exec rm -rf {} +
	find src -name '*.so' -delete

build/axpy: tests/targets/axpy.c $(wildcard tests/targets/*.h)
	mkdir -p build
	gcc -O2 -o $@ $<

$(FULL): $(INPUTS)
	scripts/setup-environment full
	touch $@ $(CORE)

$(CORE): $(INPUTS)
	scripts/setup-environment core
	touch $@
