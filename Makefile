# Every target makes .venv and installs what it needs by itself; all it asks for is Python 3.11 or later.

PYTHON ?= python3
PY := .venv/bin/python
SHARE ?= 1

.PHONY: demo test test-all test-long test-peers test-types test-distributed test-xla test-libraries test-conformance test-bounds test-browser fuzz mutate mutate-rules mutate-native bench docs lint release format clean
.NOTPARALLEL:
unexport PYTHONDONTWRITEBYTECODE  # each process of a test would compile the library anew

demo: .venv/with-plot  # fit the predator-prey model to the Hudson Bay data and draw it
	$(PY) -m lineara demo

test: .venv/with-test  # what a change should see: all but slow tests, an eighth of every table and of what is drawn at random
	$(PY) -m pytest -q -n auto

test-all: .venv/with-test  # every test and doctest
	$(PY) -m pytest -q -n auto --slow --share $(SHARE)

test-long: test-peers test-types test-distributed test-xla test-libraries test-conformance test-bounds docs test-browser  # what takes longest: other libraries, other people's tests

test-peers: .venv/with-test .venv/with-peers  # the same derivatives from torch, JAX and autograd
	$(PY) -m pytest -q -n auto --slow --share $(SHARE) tests/peers

test-distributed: .venv/with-cluster  # sums over chunks on clusters of processes, and what goes wrong there
	$(PY) -m pytest -q --all tests/distributed

test-types: .venv/with-dev  # the mistakes of a user that pyright and mypy find, and how many types are known
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(PY) tests/typing/check.py

test-xla: .venv/with-test .venv/with-peers  # every operation and its derivatives by XLA
	$(PY) -m pytest -q -n auto --all --bounds tests/peers/test_xla.py

test-libraries: .venv/with-test .venv/with-libraries  # installed libraries, differentiated as they are
	$(PY) -m pytest -q -n auto --all tests/libraries

test-conformance: .venv/with-test  # NumPy's own tests and Python's, inside of a differentiation
	$(PY) -m pytest -q -n auto --all tests/conformance

test-bounds: .venv/with-test  # machine code that looks at each place before it reads or writes there
	$(PY) -m pytest -q -n auto --all --bounds tests/engines

test-browser: .venv/with-test .venv/with-browser  # the pages in Debian's chromium, driven by Playwright
	$(PY) -m pytest -q --all tests/browser

fuzz: .venv/with-test  # the properties of the passes on 100,000 random programs, 5,000 Python functions, 50,000 captured ones, 5,000 that give arrays several names, 100,000 scripts, 3,000 calls of NumPy's functions, of the calculus and the diagrams on 20,000; the four engines and machine code on 100,000; machine code on 10,000, on 100,000 as LLVM does not make it faster, and called 10,000,000 times
	$(PY) tests/linear_a/fuzz.py
	$(PY) tests/linear_a/fuzz_python.py
	$(PY) tests/capture/fuzz_source.py
	$(PY) tests/capture/fuzz_rows.py
	$(PY) tests/scripts/fuzz_scripts.py
	$(PY) tests/ops/fuzz_calls.py
	$(PY) tests/calculus/fuzz_calculus.py
	$(PY) tests/diagrams/fuzz_diagrams.py
	$(PY) tests/engines/fuzz_crosscheck.py
	$(PY) tests/engines/fuzz_native.py
	$(PY) tests/engines/fuzz_native.py --unoptimised
	PYTHONMALLOC=debug $(PY) tests/engines/fuzz_direct.py 10000000
	$(PY) tests/linear_a/million.py

mutate: .venv/with-test  # faults put into the passes, and how many the tests catch
	$(PY) tests/linear_a/mutate.py 400 --report "make mutate"

mutate-rules: .venv/with-test  # faults put into the derivative rules, and how many the tests catch
	$(PY) tests/mutate_rules.py 400 --report "make mutate-rules"

mutate-native: .venv/with-test  # faults put into the lowering to machine code, and how many the tests catch
	$(PY) tests/engines/mutate_native.py 400 --report "make mutate-native"

bench: .venv/with-bench  # ours and the peers side by side; writes benchmarks/RESULTS.md
	$(PY) -m benchmarks

docs: .venv/with-docs  # the site, in build/docs/html; what its pages and notebooks show is run
	$(PY) -m sphinx --fail-on-warning --keep-going --jobs auto --quiet -d build/docs/doctrees docs build/docs/html

lint: .venv/with-dev  # what must be clean before a change is taken
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(PY) -m pyright

release: .venv/with-release  # make release VERSION=0.2.0: the changelog, both files built, checked and tried, a commit and its tag
	PYTHON=$(PY) .ci/release $(VERSION)

format: .venv/with-dev  # mend what can be mended by a tool
	$(PY) -m ruff check --fix --exit-zero
	$(PY) -m ruff format

clean:
	rm -rf .venv dist .pytest_cache .ruff_cache .hypothesis

.venv/with-%: pyproject.toml src/lineara/__init__.py | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

$(PY):
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Lineara needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
