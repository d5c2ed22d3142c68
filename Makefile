# One command for each thing people do here. Every target first makes .venv and installs, when pyproject or constraints changed.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed
WORKERS ?= 2
# Each test runs in one of two stages, `make test` or `make test-more`: the mark `more` decides, see pyproject.toml.
# In both, tests share the cores, file by file, but those marked `alone`, which run one after the other.
TEST := $(BIN)/python -m pytest --durations=40
SHARED := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
NBVAL := TQDM_DISABLE=1 DISTSIM_RECORDED_GUESSES=1 $(TEST) --nbval-lax --nbval-cell-timeout=120
# Files with such tests: pytest need not collect all others anew.
MORE = $(sort $(shell grep -rlE --include='test_*.py' 'mark\.(more|whole|thorough)' tests))
ALONE = $(sort $(shell grep -rl --include='test_*.py' 'mark\.alone' tests))
COUNTED = $(sort $(shell grep -rl --include='test_*.py' 'max_examples=reduced' tests))
CHAPTER := course/02_one_step.ipynb
CHAPTERS := $(wildcard course/*.ipynb)

.DEFAULT_GOAL := help
.PHONY: help demo pictures test test-more test-all bench-browser course site slides dist lint clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | column -t -s "$$(printf '\t')"

$(STAMP): pyproject.toml constraints.txt
	@echo "distsim: installing into .venv: some minutes the first time, and at least 2.5 GB of disk, most of it torch's"
	@echo "distsim: 1 of 3: making .venv"
	@$(PYTHON) -m venv .venv
	@echo "distsim: 2 of 3: bringing pip up to date"
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@echo "distsim: 3 of 3: downloading and installing $$(wc -l < constraints.txt) packages, as pip tells"
	@$(BIN)/python -m pip install --constraint constraints.txt --editable ".[course,labs,cluster,frameworks,dev]"
	@touch $(STAMP)
	@echo "distsim: installed"

demo: $(STAMP)  ## predict and really run two scenarios; writes out/demo.html
	@mkdir -p out
	$(BIN)/distsim compare distsim/examples/synchronous_ring.toml distsim/examples/backup_server.toml --html out/demo.html
	@echo "After that: make course opens the course in JupyterLab."

pictures: $(STAMP)  ## draw the pictures of README.md anew, from a real run of this machine
	@mkdir -p out course/pictures
	$(BIN)/distsim simulate distsim/examples/backup_server.toml --trace out/predicted.npz
	$(BIN)/distsim measure distsim/examples/backup_server.toml --trace out/measured.npz
	$(BIN)/distsim sweep distsim/examples/backup_server.toml --out out/sweep.csv \
		--vary policy.backups=0:3 --vary compute.cv=0.1,0.2,0.3,0.5,0.8,1.2
	$(BIN)/distsim figure timeline out/predicted.npz out/measured.npz --end "450 ms" -o course/pictures/timeline.svg
	$(BIN)/distsim figure critical-path out/measured.npz --end "450 ms" -o course/pictures/critical_path.svg
	$(BIN)/distsim figure heat-map out/sweep.csv -o course/pictures/heat_map.svg
	$(BIN)/python -c "from distsim.course.site.films import save_stills; save_stills('course/pictures')"

test: lint  ## lint, then a test of everything, in ten minutes
	$(TEST) $(SHARED) -m "not more and not alone"
	$(TEST) -m "not more and alone" $(ALONE)
	$(NBVAL) $(CHAPTER)

test-more: $(STAMP)  ## the tests that `make test` leaves out, in half an hour
	$(TEST) $(SHARED) -m "more and not alone" $(MORE)
	$(TEST) -m "more and alone" $(filter $(MORE),$(ALONE))
	DISTSIM_EXAMPLES=whole $(TEST) -n $(WORKERS) -m "hypothesis and not more" $(COUNTED)
	$(NBVAL) -n $(WORKERS) --dist loadscope $(filter-out $(CHAPTER),$(CHAPTERS))

test-all: export DISTSIM_TESTS = whole
test-all: test test-more  ## both, with statistical and stress tests whole

bench-browser: $(STAMP)  ## how long redraws of the explorers take in a browser; ARGS="--explorer race" for one
	$(BIN)/python -m tests.explorers.browser_bench $(ARGS)

course: $(STAMP)  ## open the course in JupyterLab
	$(BIN)/distsim course

site: $(STAMP)  ## build the course as pages to read, into out/site
	$(BIN)/python -m distsim.course.site out/site

slides: $(STAMP)  ## draw the chapters' figures for slides, into out/slides
	$(BIN)/python -m distsim.course.slides out/slides

dist: $(STAMP)  ## build the wheel and the sdist into dist, and check both
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*

lint: $(STAMP)  ## style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:  ## remove what the targets made
	rm -rf .venv out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
