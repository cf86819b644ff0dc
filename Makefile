# Two commands: `make demo` and `make test`. Both set everything up first; running them again is quick.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: large demo test check spark chromium slow faults bench soak docs golden format clean help

help:
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1	\2/p' $(MAKEFILE_LIST)

demo: $(READY) ## judge the taxi example on real Spark, and write a report
	$(BIN)/python examples/taxi.py --report build/taxi.html

test: check spark ## all tests

check: $(READY) ## format, lint, types, and the tests that need no JVM (about eight minutes)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not spark and not slow" --ignore=tests/spark tests docs README.md src

spark: $(READY) ## the tests that start a JVM, in two sessions side by side (about ten minutes)
	$(BIN)/pytest -q -n 2 --dist loadfile -m "spark and not slow" tests/spark docs README.md

chromium: $(READY) ## what the tests of pages need: Chromium, from Debian's packages, and Playwright to drive it
	sh scripts/install_chromium.sh
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[browser]"

slow: $(READY) ## the tests of the case studies in full, and other long ones
	$(BIN)/pytest -q -n 2 --dist loadfile -m slow tests

faults: $(READY) ## sixty seeded runs with faults on a cluster of this machine: killed, replayed, late, broken (an hour if the machine is busy)
	$(BIN)/python tests/faults/run.py --out build/faults.json

bench: $(READY) ## figures and ratios, side by side
	$(BIN)/python benchmarks/kernel.py
	$(BIN)/python benchmarks/matcher.py
	$(BIN)/python benchmarks/temporal.py
	$(BIN)/python benchmarks/spark.py
	$(BIN)/python benchmarks/compare.py
	$(BIN)/python benchmarks/check.py
	$(BIN)/python benchmarks/prove.py
	$(BIN)/python benchmarks/lint.py
	$(BIN)/python benchmarks/transformer.py
	$(BIN)/python benchmarks/graph.py
	$(BIN)/python benchmarks/plans.py
	$(BIN)/python benchmarks/parallelize.py
	$(BIN)/python benchmarks/explore.py
	$(BIN)/python benchmarks/live.py
	$(BIN)/python benchmarks/live_page.py
	$(BIN)/python benchmarks/live_yahoo.py
	$(BIN)/python benchmarks/command_line.py
	$(BIN)/python benchmarks/plugin.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[bench]"
	$(BIN)/python benchmarks/watch.py

soak: $(READY) ## half an hour of the Yahoo benchmark at a steady rate, with and without a live comparison
	$(BIN)/python benchmarks/live_yahoo.py --soak 30 --chart docs/yahoo.svg

large: $(READY) ## recorded outputs of 1, 3 and 10 million rows compared, with time and memory (long; LARGE="--rows 100" for more)
	$(BIN)/python benchmarks/large.py $(LARGE)

docs: $(READY) ## the documentation as a site in site/
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

golden: $(READY) ## write the golden files anew, for review in the diff
	UPDATE_GOLDEN=1 $(BIN)/pytest -q -m "not spark" tests

format: $(READY) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove what was built; the virtual environment stays
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The environment is made anew only when the list of packages changes.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "streamtight needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV) (the first time this takes a few minutes: Spark is large)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@
