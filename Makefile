# Everything a developer does, and all that the workflows run. `make help` lists it.

PYTHON ?= python3
VENV   := .venv
# Where a virtual environment has its programs.
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN    := $(VENV)/$(SCRIPTS)
OLDEST := $(VENV)/oldest
NIGHTLY := $(VENV)/nightly
# Sources whose change means the extension must be built again.
RUST   := $(shell find src -name '*.rs') Cargo.toml Cargo.lock pyproject.toml
CARGO_HOME ?= $(HOME)/.cargo

FUZZ_SECONDS ?= 60
HUNT_SECONDS ?= 3600

.DEFAULT_GOAL := help
.PHONY: help demo test test-rust test-python test-oldest nightly coverage hunt lint check bench chart bench-simd
.PHONY: fuzz guard deny licences docs wheel wheels wheel-use wheel-test sdist sdist-test clean tools

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/built ## Run the main job on data that ships with the package
	@$(BIN)/python -m onefold demo

test: test-rust test-python ## Run every test, Rust and Python

test-rust: tools
	cargo test --quiet --locked --features internals
	cargo run --quiet --locked --example ndarray
	cargo run --quiet --locked --example own_learner

test-python: $(VENV)/built
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

test-oldest: $(VENV)/built $(OLDEST)/tools ## Run the Python tests with the oldest versions allowed
	PYTHONPATH="$(CURDIR)/python" $(OLDEST)/$(SCRIPTS)/python -m pytest --numprocesses auto --dist worksteal

nightly: $(VENV)/built ## Run the Python tests with scikit-learn's newest pre-release; skipped where there is none
	$(PYTHON) -m venv --clear $(NIGHTLY)
	$(NIGHTLY)/$(SCRIPTS)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(NIGHTLY)/$(SCRIPTS)/python -m pip install --quiet --group test numpy scipy scikit-learn
	$(NIGHTLY)/$(SCRIPTS)/python -m pip install --quiet --pre --upgrade --only-binary :all: scikit-learn
	@version=$$($(NIGHTLY)/$(SCRIPTS)/python -c 'import sklearn; print(sklearn.__version__)'); \
	case $$version in \
		*dev*|*rc*|*a[0-9]*|*b[0-9]*) echo "scikit-learn $$version"; PYTHONPATH="$(CURDIR)/python" \
			$(NIGHTLY)/$(SCRIPTS)/python -m pytest --numprocesses auto --dist worksteal;; \
		*) echo "Skipped: no pre-release of scikit-learn, newest is $$version.";; \
	esac

coverage: $(VENV)/tools ## Share of the lines that the tests run, Rust and Python in one number (installs cargo-llvm-cov)
	@cargo llvm-cov --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-llvm-cov
	$(BIN)/python -m pip install --quiet pytest-cov
	cargo llvm-cov clean --workspace
	@eval "$$(cargo llvm-cov show-env --export-prefix)" && set -e; \
		cargo test --quiet --locked; \
		$(BIN)/maturin develop --quiet --locked; rm -f $(VENV)/built $(VENV)/bench; \
		$(BIN)/python -m pytest --numprocesses auto --dist worksteal \
			--cov=onefold --cov-report=lcov:target/python.lcov; \
		cargo llvm-cov report --lcov --output-path target/rust.lcov
	$(BIN)/python tools/coverage.py target/rust.lcov target/python.lcov

hunt: $(VENV)/built ## Random cross-validations against scikit-learn; failures are kept in .hypothesis (HUNT_SECONDS=3600)
	HUNT_SECONDS=$(HUNT_SECONDS) $(BIN)/python -m pytest tests/python/hunt/test_differential.py --timeout 0
	JOURNAL_KILLS=50 $(BIN)/python -m pytest tests/python/test_search_journal.py --timeout 0 -k killed

lint: $(VENV)/built ## Formatting, clippy, cargo doc, ruff, mypy, stubtest, benches compile
	cargo fmt --check
	cargo clippy --quiet --locked --all-targets --no-default-features -- -D warnings
	cargo clippy --quiet --locked --all-targets -- -D warnings
	cargo clippy --quiet --locked --all-targets --all-features -- -D warnings
	cargo bench --quiet --locked --no-run --profile develop --features internals
	RUSTDOCFLAGS=-Dwarnings cargo doc --quiet --locked --no-deps
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest onefold._core --ignore-disjoint-bases

check: test lint wheel-test ## What must pass before a change lands

bench: $(VENV)/bench ## Criterion benches, then ours against the peers into benches/results (ONEFOLD_DATA=…)
	cargo bench --locked --features internals
	@for script in benches/peers/*.py; do echo "== $$script"; $(BIN)/python $$script --write || exit 1; done

chart: tools ## Write the chart and the times of the README from benches/results
	$(PYTHON) benches/chart.py

guard: tools ## Peer benchmarks of BASE (a commit) and this tree compared (ONEFOLD_DATA=…, GUARD="--quick …")
	@test -n "$(BASE)" || { echo "Set BASE to the commit to compare with: make guard BASE=…" >&2; exit 1; }
	$(PYTHON) benches/guard.py $(BASE) $(GUARD)

bench-simd: ## The hot loops of a plain build against a target-cpu=native build
	cargo bench --locked --features internals --bench simd -- --save-baseline plain
	RUSTFLAGS="-C target-cpu=native" CARGO_TARGET_DIR=target/native cargo bench --locked --features internals --bench simd

fuzz: $(VENV)/built ## Fuzz what reads files, results and saved learners (FUZZ_SECONDS=60 each; guided by coverage if there is a nightly cargo-fuzz)
	@if cargo +nightly fuzz --version >/dev/null 2>&1; then \
		for target in libsvm learner_state; do \
			mkdir -p fuzz/corpus/$$target; \
			cargo +nightly fuzz run $$target fuzz/corpus/$$target tests/rust/fuzz/seeds/$$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; \
		done; \
	else \
		FUZZ_SECONDS=$(FUZZ_SECONDS) cargo test --locked --test rust fuzz::changed || exit 1; \
	fi
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest tests/python/test_fuzz.py -q -o timeout=0

deny: tools ## Licences and known vulnerabilities of all dependencies (cargo-deny, installed if missing)
	@cargo deny --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-deny
	cargo deny --locked check
	$(PYTHON) tools/third_party.py --check

licences: tools ## Write LICENSE-THIRD-PARTY, the licences of the crates that wheels contain
	$(PYTHON) tools/third_party.py

# Panic messages and assertions name source files. Those of dependencies are named by the directory of
# this machine that they were downloaded to, unless the compilers are told otherwise.
define build-wheel
cargo fetch --quiet --locked
@for directory in "$(CURDIR)" "$(CARGO_HOME)" "$(CARGO_HOME)"/registry/src/*; do \
	rust="$$rust --remap-path-prefix=$$directory=onefold-build"; \
	c="$$c -ffile-prefix-map=$$directory=onefold-build"; \
done; \
PATH="$$PWD/$(BIN):$$PATH" RUSTFLAGS="$$RUSTFLAGS$$rust" CFLAGS="$$CFLAGS$$c" \
	maturin build --release --locked --out dist
endef
NEWEST_WHEEL = "$$(ls -t dist/onefold-*.whl | head -1)"

wheel: $(VENV)/tools ## Build the wheel for this machine into dist/
	$(build-wheel)

# On Linux zig links against the symbols of an old glibc, so that the wheel runs on any distribution
# since 2014.
wheels: $(VENV)/wheel-tools ## Build the wheel to publish into dist/ (Linux: manylinux2014), and audit it
ifeq ($(shell uname -s),Linux)
	$(build-wheel) --zig --compatibility manylinux2014
	$(BIN)/auditwheel show $(NEWEST_WHEEL)
else
	$(build-wheel)
endif
	$(BIN)/abi3audit --strict --summary $(NEWEST_WHEEL)

wheel-test: wheel ## Build the wheel, install it into an empty environment and use it there
	$(MAKE) wheel-use

wheel-use: tools ## Install the newest wheel of dist/ into an empty environment and use it there
	$(PYTHON) -m venv --clear $(VENV)/empty
	$(VENV)/empty/$(SCRIPTS)/python -m pip install --quiet $(NEWEST_WHEEL)
	cd $(VENV) && empty/$(SCRIPTS)/python ../tests/wheel.py

sdist: $(VENV)/tools ## Pack the sources into dist/
	$(BIN)/maturin sdist --out dist

sdist-test: sdist ## Build the packed sources in an empty environment, and use them there
	$(PYTHON) -m venv --clear $(VENV)/empty-sdist
	$(VENV)/empty-sdist/$(SCRIPTS)/python -m pip install --quiet "$$(ls -t dist/onefold-*.tar.gz | head -1)"
	cd $(VENV) && empty-sdist/$(SCRIPTS)/python ../tests/wheel.py --built-here

docs: $(VENV)/docs $(VENV)/built ## Build the documentation into docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean: ## Remove what was built
	rm -rf $(VENV) dist target docs/_build docs/api

tools:
	@command -v cargo >/dev/null || { echo "onefold needs a Rust toolchain (cargo), which is not on PATH." >&2; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "onefold needs Python 3.11 or newer, and '$(PYTHON)' is not on PATH. Set PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "onefold needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version). Set PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "'$(PYTHON)' has no venv module (Debian: apt install python3-venv)." >&2; exit 1; }

$(VENV)/tools: pyproject.toml | tools
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1" "maturin>=1.9.4,<2"
	$(BIN)/python -m pip install --quiet --group test --group lint "numpy>=2.0" "scipy>=1.14" "scikit-learn>=1.6"
	@touch $@

$(VENV)/docs: $(VENV)/tools
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

$(VENV)/wheel-tools: $(VENV)/tools
	$(BIN)/python -m pip install --quiet --group wheels
	@touch $@

# Every lower bound of pyproject.toml, `name>=1.2`, becomes the constraint `name==1.2.*`.
$(OLDEST)/tools: pyproject.toml $(VENV)/tools
	$(PYTHON) -m venv --clear $(OLDEST)
	grep -oE '[a-z-]+>=[0-9.]+' pyproject.toml | sed 's/>=\(.*\)/==\1.*/' > $(OLDEST)/constraints.txt
	$(OLDEST)/$(SCRIPTS)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(OLDEST)/$(SCRIPTS)/python -m pip install --quiet --constraint $(OLDEST)/constraints.txt --group test numpy scipy scikit-learn
	@touch $@

$(VENV)/built: $(RUST) $(VENV)/tools
	$(BIN)/maturin develop --quiet --locked --profile develop
	@rm -f $(VENV)/bench && touch $@

# The release build takes the place of the other, so only one of the two can be up to date alone.
$(VENV)/bench: $(RUST) $(VENV)/tools
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/maturin develop --quiet --locked --release
	@touch $(VENV)/built $@
