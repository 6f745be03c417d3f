# The commands of the project. Needs Python 3.11 or newer and make; `make setup` brings the rest.

PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python
READY  := $(VENV)/.ready
CLASSES := build/spark-classes.jsa
unexport PYTHONDONTWRITEBYTECODE  # each of the many processes would compile the package anew
COMPILE := $(RUN) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
           --no-emit-index-url --no-emit-find-links

.PHONY: help setup check format test classes test-second test-long demo docs wheel fuzz chaos chaos-ends soak bench services-up services-down requirements ui clean
.DEFAULT_GOAL := help

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: $(READY)  ## create .venv and find or install Java; HEADWATER_NO_INSTALL=1 installs no system package

$(READY): requirements/build.txt requirements/dev.txt
	"$(PYTHON)" tools/ensure_venv.py
	$(RUN) tools/ensure_jdk.py
	@touch $@

check: $(READY)  ## formatting, lint and types
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m mypy

format: $(READY)  ## format the code and repair what ruff can
	$(RUN) -m ruff format .
	$(RUN) -m ruff check --fix .

test: $(CLASSES)  ## all tests, two at a time; ARGS="-k window" selects
	$(RUN) -m pytest -n 2 $(ARGS)

classes: $(CLASSES)  ## Spark's classes in a file, which the JVMs of tests map instead of loading them; test makes it too

$(CLASSES): $(READY)
	$(RUN) -m tests.parts.shared_classes

test-second: $(READY)  ## the unit tests on a second Python, if one is on the path; SECOND_PYTHON=python3.13 names it
	$(RUN) tools/second_python.py $(ARGS)

test-long: $(CLASSES)  ## what is random, thirty times as long; Flink beside us if FLINK_JARS is set; chaos; N=50 kills
	HEADWATER_LONG=1 $(RUN) -m pytest -n 2 --timeout 3600 -m "hypothesis or random or long" $(ARGS)
	$(if $(FLINK_JARS),$(RUN) tests/oracle/run.py --cases 2000 --seed $(or $(SEED),$(shell date +%s)))
	$(RUN) -m tests.chaos.run --kills $(or $(N),50) $(if $(SEED),--seed $(SEED))
	$(RUN) -m tests.chaos.ends.run --kills $(or $(N),50) $(if $(SEED),--seed $(SEED))

demo: $(READY)  ## a small job from start to end
	$(RUN) -m headwater.demo $(ARGS)

docs: $(READY)  ## the documentation site, in build/site; no network, and a warning is an error
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict --quiet

wheel: $(READY)  ## the package to install, in dist
	$(RUN) -m hatchling build -t wheel

fuzz: $(READY)  ## damaged files, rows and requests are refused or right; N=20000 of each, TARGET=savepoint, SEED=7, CASE=3
	$(RUN) -m tests.fuzz.run --count $(or $(N),20000) $(if $(TARGET),--target $(TARGET)) $(if $(SEED),--seed $(SEED)) \
	  $(if $(CASE),--case $(CASE))

chaos: $(READY)  ## a job under random faults; N=200 kills, SEED=7 repeats a run
	$(RUN) -m tests.chaos.run --kills $(or $(N),20) $(if $(SEED),--seed $(SEED))

chaos-ends: $(READY)  ## Kafka to Kafka and PostgreSQL under random kills and restarts; N=50 kills
	$(RUN) -m tests.chaos.ends.run --kills $(or $(N),50) $(if $(SEED),--seed $(SEED))

soak: $(READY)  ## keys come and go under a ttl: memory and checkpoints stay flat; MINUTES=30, a picture in soak.svg
	$(RUN) bench/soak.py --minutes $(or $(MINUTES),30) --picture $(or $(PICTURE),soak.svg)

bench: $(READY)  ## NAME=x runs bench/x.py; without NAME lists them
ifdef NAME
	$(RUN) "bench/$(NAME).py"
else
	@ls bench 2>/dev/null | sed -n 's/^\([a-z].*\)\.py$$/  make bench NAME=\1/p'
endif

services-up: $(READY)  ## Kafka and PostgreSQL on loopback, in the background, to try connectors with
	$(RUN) -m tests.parts.services up

services-down: $(READY)  ## stop them and remove their data
	$(RUN) -m tests.parts.services down

ui:  ## build the dashboard's front end into the package; needs Node.js
	npm --prefix web install --no-save
	npm --prefix web run build

requirements: $(READY)  ## pin the newest allowed versions again
	$(COMPILE) --upgrade requirements/build.in -o requirements/build.txt
	$(COMPILE) --upgrade pyproject.toml -o requirements/runtime.txt
	$(COMPILE) --upgrade requirements/dev.in -o requirements/dev.txt

clean:  ## remove .venv and everything built
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
