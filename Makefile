# The two set-up commands of the README are `make demo` and `make test`; `make check` is what CI runs first.
# `make quick` is what a change to one equation or command needs, with `ALSO=tests/commands/test_cost.py` what belongs to it.
# Nothing but Python >= 3.11 and make is needed; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WHEEL_VENV := .venv-wheel
GENERATED := README.md profiles/README.md $(wildcard docs/*.md docs/*/*.md)
SCHEMA := docs/reference/scenario.schema.json
REVIEW := docs/reviews/review-32b
PYTEST_FLAGS ?= -q -n auto --dist worksteal
unexport PYTHONDONTWRITEBYTECODE  # else each process that a test starts compiles the program anew
QUICK := tests/test_units.py tests/test_errors.py tests/equations tests/facts tests/architecture tests/examples \
	tests/docs/test_commands.py tests/commands/test_startup.py tests/commands/test_bad_input.py tests/commands/test_alerts.py \
	tests/commands/test_init.py

.PHONY: demo quick test nightly check lint format types imports docs docs-write docs-site test-wheel test-lowest test-pythons sbom engine test-engine browser test-browser \
	prometheus test-prometheus frameworks test-frameworks \
	bench bench-engine clean help

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(VENV)/.run: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.run  ## make .venv, install, size the example scenario
	@echo '$$ rlsize fleet examples/grpo-32b.yaml'
	@$(BIN)/rlsize fleet examples/grpo-32b.yaml

test: $(VENV)/.dev  ## make .venv, install, run the tests
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

quick: $(VENV)/.dev  ## within a minute: ruff, import contract, equations, examples of the commands, and ALSO=...
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python -m pytest $(PYTEST_FLAGS) $(QUICK) $(ALSO)

nightly: export RLSIZE_NIGHTLY := 1
nightly: $(VENV)/.dev  ## hours: all that long tests can try, every signal, 500 loops, 20,000 command lines, newest frameworks
	$(BIN)/python -m pytest $(PYTEST_FLAGS)
	$(BIN)/python -m benchmarks.closed_form 500
	$(BIN)/python -m tests.fuzz.lines 20000
	$(MAKE) test-prometheus test-frameworks test-engine
	$(MAKE) test-lowest test-pythons

check: lint types imports test  ## lint, types, import contract, tests; the generated pages are among the tests

lint: $(VENV)/.dev  ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev  ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev  ## mypy --strict
	$(BIN)/mypy

imports: $(VENV)/.dev  ## who may import whom
	$(BIN)/lint-imports

docs: $(VENV)/.dev  ## the generated pages are up to date
	$(BIN)/cog --check -n utf-8 -I docs $(GENERATED)

docs-write: $(VENV)/.dev  ## write the examples' outputs, the schema, the pictures and the generated pages anew
	$(BIN)/python examples/run.py --write
	$(BIN)/rlsize schema scenario > $(SCHEMA).new && mv $(SCHEMA).new $(SCHEMA)
	PYTHONPATH=docs $(BIN)/python -m generate.pictures
	rm -f $(REVIEW).md $(REVIEW).html
	for form in md html; do $(BIN)/rlsize report examples/review-32b.yaml --steps 2000 -o $(REVIEW).$$form >/dev/null || exit 1; done
	$(BIN)/cog -r -n utf-8 -I docs $(GENERATED)

docs-site: $(VENV)/.dev  ## all pages as a site in site/, with a search of its own, by role
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[site]'
	PYTHONPATH=docs $(BIN)/python -m generate.site build/pages
	$(BIN)/zensical build --clean --strict

test-wheel: $(VENV)/.dev  ## the built wheel: every module, the examples, some commands, without src/ and profiles/
	rm -rf dist $(WHEEL_VENV)
	$(BIN)/python -m build --outdir dist
	$(PYTHON) -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check "$$(echo dist/*.whl)[fast]"  # examples say who played a simulation
	$(BIN)/python tests/run_on_wheel.py $(WHEEL_VENV)/bin/python

test-lowest: test-wheel  ## the same wheel with the oldest dependencies that it declares; rich is the newest, as it pads tables
	mkdir -p build && sed -n '/^dependencies/,/^]/s/^ *"\([a-z-]*\)>=\([0-9.]*\).*/\1==\2/p' pyproject.toml | grep -v ^rich > build/lowest.txt
	rm -rf $(WHEEL_VENV) && $(PYTHON) -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c build/lowest.txt "$$(echo dist/*.whl)[fast]"
	$(BIN)/python tests/run_on_wheel.py $(WHEEL_VENV)/bin/python

test-pythons:  ## the wheel under each Python that is declared and found here
	for version in 3.11 3.12 3.13; do \
		if python$$version --version; then $(MAKE) test-wheel PYTHON=python$$version WHEEL_VENV=.venv-wheel-$$version || exit 1; \
		else echo "skipped: no Python $$version"; fi; done

sbom: test-wheel  ## what the tested wheel brings along, as CycloneDX: dist/rlsize.cdx.json
	$(PYTHON) -m venv build/sbom
	build/sbom/bin/python -m pip install --quiet --disable-pip-version-check 'cyclonedx-bom>=7,<8'
	build/sbom/bin/cyclonedx-py environment $(WHEEL_VENV) --pyproject pyproject.toml --mc-type library -o dist/rlsize.cdx.json

engine: $(VENV)/.dev  ## a real vLLM for CPUs in the cache folder, for the two targets below
	@$(BIN)/python tests/engine/install.py || test $$? -eq 77

test-engine: $(VENV)/.dev  ## the tests against a real vLLM and a real trainer; skipped where there is none
	@python=$$($(BIN)/python tests/engine/install.py) || test $$? -eq 77; \
	test -n "$$python" || echo "skipped: no vLLM for CPUs can be had here"; \
	RLSIZE_ENGINE_PYTHON=$$python $(BIN)/python -m pytest -q -n 2 --dist loadfile tests/engine

browser: $(VENV)/.dev  ## Playwright and axe in the cache folder, and a Chromium, for the target below
	@$(BIN)/python tests/browser/install.py || test $$? -eq 77

test-browser: docs-site  ## the tests of pages and of the site in a real browser; skipped where there is none
	@packages=$$($(BIN)/python tests/browser/install.py) || test $$? -eq 77 || exit 1; \
	test -n "$$packages" || echo "skipped: no Chromium can be had here"; \
	RLSIZE_BROWSER_PACKAGES=$$packages $(BIN)/python -m pytest -q -n 2 --dist loadscope tests/browser

prometheus: $(VENV)/.dev  ## a Prometheus with its promtool, for the target below
	@$(BIN)/python tests/prometheus/install.py || test $$? -eq 77

test-prometheus: $(VENV)/.dev  ## the tests against a real Prometheus and promtool; skipped where there is none
	@folder=$$($(BIN)/python tests/prometheus/install.py) || test $$? -eq 77 || exit 1; \
	test -n "$$folder" || echo "skipped: no Prometheus can be had here"; \
	RLSIZE_PROMETHEUS_BIN=$$folder $(BIN)/python -m pytest -q -n 2 --dist worksteal tests/prometheus

frameworks: $(VENV)/.dev  ## packages of RL frameworks in the cache folder, for the target below
	@$(BIN)/python tests/frameworks_loaded/install.py || test $$? -eq 77

test-frameworks: $(VENV)/.dev  ## written configurations, loaded by frameworks' own code; skipped where it cannot be had
	@folder=$$($(BIN)/python tests/frameworks_loaded/install.py) || test $$? -eq 77 || exit 1; \
	test -n "$$folder" || echo "skipped: no framework can be loaded here"; \
	RLSIZE_FRAMEWORKS_FOLDER=$$folder $(BIN)/python -m pytest -q -n 2 --dist loadgroup tests/frameworks_loaded

bench: $(VENV)/.dev  ## speed of the program itself
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python -m benchmarks.engine_points
	$(BIN)/python -m benchmarks.simulator_speed
	$(BIN)/python -m benchmarks.planner_speed

bench-engine: $(VENV)/.dev  ## measured rates against vLLM's own benchmarks and a hand-written trainer
	@python=$$($(BIN)/python tests/engine/install.py) && \
	$(BIN)/python -m benchmarks.rollout_rate "$$python" && \
	$(BIN)/python -m benchmarks.train_rate "$$python"

clean:  ## remove what was built
	rm -rf $(VENV) $(WHEEL_VENV) .venv-wheel-* dist build site .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
