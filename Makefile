# `make demo` and `make test` need only Python 3.11 or newer and make: both create the environment first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# One worker per core. On two cores, without cached kernels, the tests take 10 minutes, most of it compilation.
PYTEST := $(BIN)/python -m pytest --numprocesses=auto --maxprocesses=8 --dist=worksteal

.PHONY: demo test gate lint types tests coverage portable sanitize format bench docs clean

demo: $(VENV)/.demo
	$(BIN)/tanlearn compare

test: $(VENV)/.dev
	$(MAKE) --no-print-directory gate

gate: lint types tests coverage

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy
	$(BIN)/mypy tests/support/user_program.py

tests:
	$(PYTEST)

# The same kernels as plain Python, because coverage cannot be measured inside compiled kernels.
coverage:
	NUMBA_DISABLE_JIT=1 $(PYTEST) tests/kernels --cov --cov-report=term-missing:skip-covered

# The tests as on a plain x86-64 processor: kernels for SSE2 only, NumPy without AVX-512, BLAS as on Haswell. Only the
# AVX-512 names that both this NumPy and this processor have are disabled, because others are errors. These kernels have
# their own cache.
portable: $(VENV)/.dev
	NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python -c "import numpy; \
	found = numpy.show_config('dicts')['SIMD Extensions'].get('found', []); \
	print(*[name for name in found if name == 'X86_V4' or name.startswith('AVX512')])")" \
	NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES= OPENBLAS_CORETYPE=Haswell NUMBA_CACHE_DIR="$(CURDIR)/.portable_cache" \
	$(MAKE) --no-print-directory tests coverage

# CUDA source code on the host under AddressSanitizer and UndefinedBehaviorSanitizer (g++).
sanitize: $(VENV)/.dev
	LD_PRELOAD=$$(g++ -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0 \
	TANLEARN_HOST_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined" \
	$(BIN)/python -m pytest -p no:cacheprovider tests/kernels -k "test_cuda_ and not text"

format:
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Each benchmark once in this environment, or only those that match BENCH. asv stores the results in benchmarks/results,
# which git ignores, with the hash of the commit, unless tracked files have changes.
BENCH ?= .
bench: $(VENV)/.bench
	cd benchmarks && ../$(BIN)/asv machine --yes && ../$(BIN)/asv run --quick --python=same --launch-method=forkserver --bench="$(BENCH)" \
	$$(test -z "$$(git status --porcelain --untracked-files=no)" && echo --set-commit-hash=$$(git rev-parse HEAD))

# The site, in docs/_build/html. Warnings are errors, also warnings about dead links between pages.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html

$(VENV)/.demo $(VENV)/.dev $(VENV)/.bench $(VENV)/.docs: $(VENV)/.%: setup.cfg pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	@touch $@

clean:
	rm -rf $(VENV) docs/_build docs/auto_examples docs/api/generated .portable_cache build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
