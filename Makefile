# One command for each thing people do here. Every target first makes .venv and installs, when pyproject or constraints changed.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed
WORKERS ?= 2
# Tests that start ranks or a browser go one after the other: what they time should have the machine to itself.
TEST := $(BIN)/python -m pytest
# These also start ranks, but on a virtual clock: other work beside them changes nothing.
VIRTUAL := tests/testbed tests/labs
GRADING := tests/grading

.DEFAULT_GOAL := help
.PHONY: help demo pictures test test-all course site slides lint clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | column -t -s "$$(printf '\t')"

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[course,labs,cluster,dev]"
	@touch $(STAMP)

demo: $(STAMP)  ## predict and really run two scenarios; writes out/demo.html
	@mkdir -p out
	$(BIN)/distsim compare distsim/examples/synchronous_ring.toml distsim/examples/backup_server.toml --html out/demo.html

pictures: $(STAMP)  ## draw the pictures of README.md anew, from a real run of this machine
	@mkdir -p out course/pictures
	$(BIN)/distsim simulate distsim/examples/backup_server.toml --trace out/predicted.npz
	$(BIN)/distsim measure distsim/examples/backup_server.toml --trace out/measured.npz
	$(BIN)/distsim sweep distsim/examples/backup_server.toml --out out/sweep.csv \
		--vary policy.backups=0:3 --vary compute.cv=0.1,0.2,0.3,0.5,0.8,1.2
	$(BIN)/distsim figure timeline out/predicted.npz out/measured.npz --end "450 ms" -o course/pictures/timeline.svg
	$(BIN)/distsim figure critical-path out/measured.npz --end "450 ms" -o course/pictures/critical_path.svg
	$(BIN)/distsim figure heat-map out/sweep.csv -o course/pictures/heat_map.svg

test: lint  ## lint, then every test that fits in minutes
	$(TEST) --durations=10 -n $(WORKERS) -m "not real and not chromium"
	$(TEST) --durations=10 -n $(WORKERS) -m real $(VIRTUAL)
	$(TEST) --durations=10 -n $(WORKERS) --dist loadfile -m real $(GRADING)
	$(TEST) --durations=15 -m "real or chromium" $(patsubst %,--ignore=%,$(VIRTUAL) $(GRADING))
	TQDM_DISABLE=1 $(TEST) -n $(WORKERS) --dist loadscope --nbval-lax --nbval-cell-timeout=120 course --ignore=course/explorers  # tests/explorers runs those

test-all: export DISTSIM_TESTS = whole
test-all: test  ## the same, with statistical and stress tests whole

course: $(STAMP)  ## open the course in JupyterLab
	$(BIN)/distsim course

site: $(STAMP)  ## build the course as pages to read, into out/site
	$(BIN)/python -m distsim.course.site out/site

slides: $(STAMP)  ## draw the chapters' figures for slides, into out/slides
	$(BIN)/python -m distsim.course.slides out/slides

lint: $(STAMP)  ## style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:  ## remove what the targets made
	rm -rf .venv out build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
