# Everything happens in .venv; on a fresh machine `make demo` and `make test` need Python 3.11+, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
NAME ?=
# The tests start thousands of processes; where nothing is cached, each would compile every module that it loads.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all soak ready compiled linted phases check bench accuracy serve cluster debian node frameworks peers clean

demo: $(INSTALLED)  ## measure, explain, predict, tune, serve: the whole loop on this machine
	$(BIN)/crosswind demo $(DEMO)

serve: $(INSTALLED)  ## the pages and the API of the store
	$(BIN)/crosswind serve

cluster: $(INSTALLED)  ## PostgreSQL, S3, two servers behind a proxy and Dask on this machine, until Ctrl-C: docs/scale.md
	@$(MAKE) --no-print-directory debian PACKAGES='postgresql haproxy'
	@exec $(BIN)/python -m benchmarks.cluster $(CLUSTER)

check: $(INSTALLED)  ## what CI checks before it runs the tests
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target linted compiled

linted: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests/client/typed_use.py
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tests/words.py api benchmarks dashboards data ingest models src tests

# The first phase runs in several processes, as many tests wait; the second alone on the machine. One line lists what was skipped.
WORKERS ?= 4
EVERY_DAY := not thorough and
test: ready  ## check + the tests of every day: each promise and each real part once, in ten minutes on 2 cores
	@$(MAKE) --no-print-directory phases ONLY='$(EVERY_DAY)'

test-all: ready peers node  ## check + every test, also those that repeat, count or take long, and ours in Optuna and Ray Tune
	@$(MAKE) --no-print-directory phases
	@$(PEERS)/bin/python -m pytest -q -p no:cacheprovider -p no:unraisableexception tests/samplers tests/models/tuner/search/test_named_searches.py

soak: $(INSTALLED) debian  ## ten minutes: a fleet ships to two servers that are killed again and again, next to PostgreSQL's restarts
	SOAK_SECONDS=600 $(BIN)/pytest -q -s -o faulthandler_timeout=1800 tests/api/several/test_killed_servers.py

ready: $(INSTALLED) debian check

# Every test is imported once: a missing name shows in seconds, and the processes that run them need not compile them.
compiled: $(INSTALLED)
	@printed=$$($(BIN)/pytest --collect-only -qq 2>&1) || { echo "$$printed" | grep -v 'nanobind\|^ - '; exit 1; }

# A test that failed next to others (code 1) runs once more alone, as in CPython's suite: small machines stall, a real cause fails again.
ONCE := -q -n $(WORKERS) --max-worker-restart=0 --dist loadscope --no-loadscope-reorder
phases: $(INSTALLED)
	@kept=$$(mktemp -d); touch $$kept/skips; failed=0; \
	run() { CROSSWIND_SKIPS=$$kept/skips $(BIN)/pytest -o cache_dir=$$kept "$$@" $(TESTS); code=$$?; [ $$code = 0 ] || [ $$code = 5 ]; }; \
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 run $(ONCE) -m '$(ONLY) not host' || failed=$$code; \
	if [ $$failed = 1 ]; then echo 'What failed, once more, alone:'; run --last-failed --maxfail=3 -m '$(ONLY) not host' && failed=0; fi; \
	run -q -m '$(ONLY) host' || failed=$$code; \
	$(BIN)/python tests/needs.py $$kept/skips; times >$$kept/times; echo "CPU of the tests, user and system: $$(tail -1 $$kept/times)"; \
	rm -r $$kept; exit $$failed

bench: $(INSTALLED)  ## make bench NAME=startup: measured next to its peer; without a name all, quickly
	$(BIN)/python -m benchmarks $(NAME)

accuracy: $(INSTALLED)  ## make accuracy NAME=tuner: accuracy next to baselines, with the split
	$(BIN)/python -m benchmarks --accuracy $(NAME)

# PyTorch goes first and by pip, which honours find-links: name a wheel without CUDA in PIP_FIND_LINKS or PIP_INDEX_URL.
# uv installs the rest in seconds; if it cannot reach an index that pip can, pip does it in minutes.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Crosswind needs Python 3.11 or newer: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable '.[all,dev]' \
	  || $(BIN)/pip install --quiet --constraint constraints.txt --editable '.[all,dev]'
	touch $@

# Real programs for the tests: a browser, PostgreSQL, Slurm, Prometheus, HAProxy.
PACKAGES := openmpi-bin libopenmpi-dev chromium fonts-dejavu-core postgresql slurm-wlm slurmctld slurmd slurmdbd slurm-client munge mariadb-server iproute2 \
  prometheus prometheus-node-exporter nftables haproxy
debian:
	@missing=$$(for p in $(PACKAGES); do dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	else echo "Some tests will skip: install" $$missing "(apt-get install --no-install-recommends ...)"; fi

# Programs that only npm has: a certified OpenID Connect provider, a linter of the API's description, a checker of accessibility.
NODE := .node
NODE_PACKAGES := oidc-provider@8.8.1 @stoplight/spectral-cli@6.16.3 axe-core@4.14.1
node:
	@npm install --prefix $(NODE) --no-save --no-audit --no-fund --ignore-scripts --loglevel=error $(NODE_PACKAGES) >/dev/null \
	  || echo "Some tests will skip: npm did not install" $(NODE_PACKAGES)

# JAX, TensorFlow, Spark (which needs Java) and DeepSpeed: 4 GB, so in an environment of their own; without it their tests skip.
FRAMEWORKS := .venv-frameworks
frameworks:
	test -x $(FRAMEWORKS)/bin/python || $(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/pip install --quiet --constraint constraints.txt torch uv setuptools wheel ninja numpy packaging
	PATH="$(CURDIR)/$(FRAMEWORKS)/bin:$$PATH" $(FRAMEWORKS)/bin/uv pip install --quiet --python $(FRAMEWORKS)/bin/python \
	  --no-build-isolation-package deepspeed --requirements requirements-frameworks.txt
	$(FRAMEWORKS)/bin/uv pip install --quiet --python $(FRAMEWORKS)/bin/python --no-deps --editable .

# Other tuners: `$(PEERS)/bin/python -m benchmarks --accuracy tuner` compares ours with them, `make test-all` runs ours in them.
# And HolisticTraceAnalysis, which `make bench NAME=traces` runs there.
PEERS := .venv-peers
peers:
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --constraint constraints.txt torch uv
	$(PEERS)/bin/uv pip install --quiet --python $(PEERS)/bin/python --requirements requirements-peers.txt --editable '.[server,postgres]'

clean:
	rm -rf $(VENV) $(FRAMEWORKS) $(PEERS) $(NODE) build dist src/*.egg-info
