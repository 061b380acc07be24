# Everything runs in a virtual environment of its own; the first target of a fresh clone makes it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= auto
HELPERS := tests/helpers:tests/helpers/benches:tests/helpers/builds:tests/helpers/formats:tests/helpers/graphs:tests/helpers/passes
# EXTRAS=dev,crosscheck also compares with other projects' parsers and engines.
EXTRAS ?= dev

.PHONY: demo demo-gpt test test-system nightly prove golden passes notebooks site lint types bench bench-engine bench-frontend bench-tools bench-growth clean

demo: $(VENV)/.installed
	$(BIN)/nnef-hw build examples/digits_cnn/digits_cnn.nnef.tgz --board icebreaker \
	    --calibrate examples/digits_cnn/samples.npz --out build/digits_cnn

# A language model writes names, on a simulated board.
demo-gpt: $(VENV)/.installed
	$(BIN)/nnef-hw build examples/names_gpt/names_gpt.onnx --board tang_nano_20k --no-bitstream \
	    --token-loop --state keys=keys_next --state values=values_next \
	    --calibrate examples/names_gpt/samples.npz --out build/names_gpt
	$(BIN)/nnef-hw generate build/names_gpt --tokenizer examples/names_gpt/tokens.txt --texts 10 \
	    --temperature 0.8 --seed 1 --port sim

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not nightly and not system"

# Whole networks through the commands, Verilator, place and route, and models of boards.
test-system: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "system and not nightly"

# What takes minutes each: exhaustive link faults, netlists and bitstreams for every board; and what
# make test leaves out of sweeps. A system with a processor wants what examples/litex/README.md installs.
nightly: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m nightly

# Proofs of all components of rtl/ (docs/proofs.md).
prove: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "nightly or not nightly" tests/proofs

# Records anew which plans and which Verilog belong to the networks of tests/golden.
golden: $(VENV)/.installed-dev
	PYTHONPATH=$(HELPERS) $(BIN)/python tests/golden/update.py

# Writes what passes make of the cases of tests/passes/texts that do not say it yet.
passes: $(VENV)/.installed-dev
	PYTHONPATH=$(HELPERS) $(BIN)/python tests/passes/update.py

# Executes the notebooks of examples/ and keeps what they show; digits_to_board needs the extra "train".
notebooks: $(VENV)/.installed-dev
	$(BIN)/python scripts/generate/notebooks.py $(ARGS)

# The documentation's site, in build/site; warnings are errors.
site: $(VENV)/.installed-dev
	$(BIN)/mkdocs build --strict

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# About five minutes. ARGS="--quick" leaves out place and route of the ECP5-85F; "--large" and "--engine" build
# larger networks, "--tang" and "--gw5a" those of other boards. "--refresh-old" measures only what is another
# netlist today, "--mark-old" nothing: it marks such rows.
bench: $(VENV)/.installed
	$(BIN)/python scripts/bench/bench.py $(ARGS)

# Cycles of the shared engine, by simulation of MLPerf Tiny's networks.
bench-engine: $(VENV)/.installed
	$(BIN)/python scripts/bench/bench_engine.py $(ARGS)

# How fast models are read. ARGS="--fuzz 10000" loads that many damaged models instead.
bench-frontend: $(VENV)/.installed
	$(BIN)/python scripts/bench/bench_frontend.py $(ARGS)

# CPU time and memory of load, quantize, schedule, Verilog and Verilator. ARGS="--plan" ends with the plan.
bench-tools: $(VENV)/.installed
	$(BIN)/python scripts/bench/bench_tools.py $(ARGS)

# How CPU time of passes and walks grows with a network's nodes. ARGS="--sizes 500,1000 wide" measures less.
bench-growth: $(VENV)/.installed
	$(BIN)/python scripts/bench/bench_growth.py $(ARGS)

clean:
	rm -rf build $(VENV)

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nnef-hw needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[ice40,ecp5,gowin]'
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	touch $@
