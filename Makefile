# The commands of README.md and CONTRIBUTING.md, and those that CI runs. Each sets up what it needs.

# Outside the checkout, so that a fresh clone on the same machine finds its dependencies built.
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cx
export CARGO_TARGET_DIR ?= $(CACHE)/target
export CX_INTEROP_DIR ?= $(CACHE)/interop

CX = $(CARGO_TARGET_DIR)/release/cx

# Where benches/agents installs its packages.
AGENTS = $(CACHE)/agents

.PHONY: isolation syscalls cgroup-v2 nats-kills coverage docs-rs
.PHONY: demo install check test models soak soak-attackers walk lint features package doc book deny bench picture component
.PHONY: v8 interop frameworks conformance fixtures bench-agents bench-agents-model bench-agents-check bench-search
.PHONY: fuzz fuzz-check growth differential audit-kills

## A configuration with the absolute path of the example server, for use from any directory. It is in the build directory,
## because it is valid only as long as the server is there.
DEMO_CONFIG = $(abspath $(CARGO_TARGET_DIR))/demo.json

## Build the command and run the example scripts against the example server. Says at the end what to type next.
demo: v8
	cargo build --release --locked -p cx -p library-server --bin cx --bin library-server
	@printf '{ "mcpServers": { "library": { "command": "%s" } } }\n' \
	  '$(abspath $(CARGO_TARGET_DIR))/release/library-server' > '$(DEMO_CONFIG)'
	@for script in search.ts fan_out.ts by_branch.py failing_tool.ts; do \
	  printf '\n== examples/scripts/%s\n' $$script; \
	  $(CX) run --mcp-config '$(DEMO_CONFIG)' --stats examples/scripts/$$script || exit 1; \
	done
	@printf '\nThese work in any directory:\n\n'
	@printf '  %s tools list --mcp-config %s\n' '$(abspath $(CX))' '$(DEMO_CONFIG)'
	@printf '  %s run --mcp-config %s --stats %s\n' '$(abspath $(CX))' '$(DEMO_CONFIG)' '$(CURDIR)/examples/scripts/total.ts'
	@printf '\n`make install` puts cx on the PATH.\n'

## Put `cx` where cargo installs programs: `~/.cargo/bin`, unless CARGO_INSTALL_ROOT or CARGO_HOME says otherwise.
install: v8
	cargo install --path . --locked

## The inner loop: formatting, the quick unit tests, and the snapshots of scripts in both languages. Needs no network, no
## Node and no Python. Tests that take seconds are left to `test`: model checks, fuzz targets, worker processes, upstream
## servers that hang, the deepest and the largest sources.
check: v8
	cargo fmt --all --check
	cargo test --locked --lib -- --skip models:: --skip fuzzing:: --skip engine::process:: --skip mcp::tests:: \
	  --skip tests::work:: --skip hostile --skip at_its_bound --test-threads 8
	cargo test --locked --test it engine::scripts::

## Run all tests: the library's, the integration tests with real MCP servers and clients, the documentation's.
test: v8 interop
	cargo test --locked --no-run
	cargo test --locked

## Run the code that threads share under many more schedules than `test` does: see `src/sync/model.rs`.
models: v8
	CX_MODEL_ITERATIONS=$(or $(CX_MODEL_ITERATIONS),100000) cargo test --locked --lib models:: -- --nocapture

## Worker processes: all scripts of the suite in them, and a thousand crashes of each kind. A short form is part of `test`.
isolation: v8
	CX_ALL_IN_PROCESSES=1 cargo test --locked --test it isolation:: -- --nocapture
	CX_CRASHES=1000 cargo test --locked --lib engine::process -- --nocapture

## Compare the system calls of the suite in worker processes with the list of allowed ones. Needs `strace`, and an hour;
## `CX_SYSCALLS_EVERY=10` takes a tenth of the scripts.
syscalls: v8
	cargo build --locked --bin cx
	python3 tests/syscalls.py $(CARGO_TARGET_DIR)/debug/cx $(or $(CX_SYSCALLS_EVERY),1)

## Limits of control groups of version 2, in a virtual machine that has no others. Needs qemu-system-x86 and busybox-static.
cgroup-v2: v8
	cargo build --locked --bin cx
	python3 tests/cgroup_v2.py $(CARGO_TARGET_DIR)/debug/cx

## Ten thousand runs over stdio, good, failing and hostile: every answer is right, and nothing grows. A short form is part
## of `test`.
soak: v8
	cargo build --release --locked --example chaos
	CX_SOAK_RUNS=10000 cargo test --release --locked --test it soak:: -- --nocapture --test-threads 1

## Twenty minutes of attackers and honest clients on one server, over HTTP and then over pipes: nothing is lost, nothing
## grows, and honest runs take at most five times as long. A short form is part of `test`.
soak-attackers: v8
	CX_SOAK_SECONDS=$(or $(CX_SOAK_SECONDS),1200) cargo test --release --locked --test it soak_attackers:: -- --nocapture --test-threads 1

## Two thousand runs on five workers over NATS, which are killed at any moment: none is lost, none is executed twice. Needs
## `nats-server`. A short form is part of `test`.
nats-kills: v8
	CX_NATS_RUNS=$(or $(CX_NATS_RUNS),2000) cargo test --locked --test it nats::workers_that_are_killed -- --nocapture

## Two processes that write one audit trail, killed 200 times at any moment. A short form is part of `test`.
audit-kills: v8
	cargo build --locked --example audit-writer
	CX_AUDIT_KILLS=$(or $(CX_AUDIT_KILLS),200) cargo test --locked --test it audit::kills -- --nocapture

## 200,000 calls of everything that a script can reach, with hostile receivers and arguments, in each language. A short form
## is part of `test`.
walk: v8
	cargo build --release --locked --example canary
	CX_WALK_CALLS=$(or $(CX_WALK_CALLS),200000) cargo test --release --locked --test it walk:: -- --nocapture --test-threads 1

## Measure the line coverage of all tests, folder by folder, and compare it with the minimum figures in
## `tests/coverage/report.py`. Takes about twice as long as `test`. Needs LLVM's tools: see `tests/coverage/measure.sh`.
coverage: v8 interop
	tests/coverage/measure.sh

lint: v8
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings

## Check that each feature alone, and none, compiles without a warning, and how many crates TypeScript alone takes.
FEATURES = $(shell sed -n '/^\[features\]/,/^$$/s/^\([a-z]*\) = .*/\1/p' Cargo.toml)

features: v8
	@for feature in "" $(FEATURES); do \
	  echo "feature: $${feature:-none}"; \
	  cargo clippy --locked --lib --bins --no-default-features --features "$$feature" -- -D warnings || exit 1; \
	done
	@crates=$$(cargo tree --locked --no-default-features --features typescript -e normal --prefix none | \
	  sed 's/ (\*)$$//' | sort -u | wc -l); \
	echo "typescript alone: $$crates crates"; [ "$$crates" -le 280 ]

## Package what could be published, and check it: its size, its lock file, and that it compiles from the packages alone.
package: v8
	tests/package.sh

doc: v8
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps -p cx -p cx-python-component

## Build the documentation as docs.rs does: all features, no network and no V8. Not in the directory of other builds,
## because V8's build script asks for the same variable.
docs-rs:
	DOCS_RS=1 RUSTFLAGS='--cfg cx_docs' RUSTDOCFLAGS='-D warnings' CARGO_TARGET_DIR='$(CACHE)/docs-rs-target' \
	  cargo doc --locked --no-deps --all-features -p cx

## Build docs/ as a book with mdBook (`cargo install --locked mdbook`), and check its links. It is for a browser:
## `$(BOOK)/index.html`.
BOOK = $(abspath $(CARGO_TARGET_DIR))/book

book:
	docs/book/build.sh '$(BOOK)'

deny:
	cargo deny --locked check licenses bans sources

## Build the Python component again and compare it with the committed one.
component:
	CX_PYTHON_TOOLS=$(CACHE)/python-tools python-wasm/build.sh --check

bench: v8
	cargo build --release --locked --bin cx --example chaos
	cd benches/pyodide && npm ci --ignore-scripts
	cargo bench --locked

## What an agent pays to find, call and read tools, directly and through cx, by the entries of four benchmarks. Writes the
## charts and tables of docs/agents.md. Needs Node, and the registries of npm and PyPI once.
bench-agents: v8
	cargo build --release --locked --bin cx
	benches/agents/run.sh '$(abspath $(CX))'

## The same conversations held by a real model, through cx and with tools shown directly: success, tokens, turns. The
## provider and its key are those of docs/llm.md, in the environment: `CX_LLM_PROVIDER`, `CX_LLM_MODEL` and the key.
ENTRIES ?= 20
bench-agents-model: v8
	cargo build --release --locked --bin cx
	benches/agents/install.sh
	'$(AGENTS)/python/bin/python' benches/agents/drive.py '$(abspath $(CX))' --entries $(ENTRIES) \
	  --figures '$(AGENTS)/model.json'

## Test the driver of `bench-agents-model` against a provider on loopback that plays a model, and what reads recorded
## conversations.
bench-agents-check: v8
	cargo build --locked --bin cx
	benches/agents/install.sh
	cd benches/agents && CX='$(abspath $(CARGO_TARGET_DIR))/debug/cx' '$(AGENTS)/python/bin/python' -m unittest -v

## How well search finds tools: recall on four benchmarks, in halves, and on the judged queries of tests/search. It
## measures no time, so it uses the profile of the tests.
bench-search: v8
	benches/agents/install.sh
	'$(AGENTS)/python/bin/python' benches/agents/search.py '$(AGENTS)/judged.json'
	cargo bench --locked --profile dev --bench search -- '$(AGENTS)/judged.json'

## Draw the diagram of the README from its figures. The script says how to measure them again.
picture:
	docs/picture/draw.py

v8:
	@third_party/v8/install.sh

interop:
	@tests/interop/install.sh $(CX_INTEROP_DIR)

## Load and call the tools with every agent framework that the tests know. Two of them are part of `test`.
frameworks: v8
	@tests/interop/install.sh $(CX_INTEROP_DIR) all
	CX_FRAMEWORKS=all cargo test --locked --test it frameworks:: -- --nocapture --test-threads 1

## Run test262 as it is and transpiled: what V8 passes must pass in both forms. `CX_CONFORMANCE_DIR` names another checkout of
## test262 than the one of the lock file. A short form is part of `test`.
CONFORMANCE = $(CACHE)/conformance
TEST262 = $(or $(CX_CONFORMANCE_DIR),$(CONFORMANCE)/node_modules/@gerhobbelt/test262)

conformance: v8
	@mkdir -p '$(CONFORMANCE)'
	cp tests/conformance/package.json tests/conformance/package-lock.json '$(CONFORMANCE)'
	cd '$(CONFORMANCE)' && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	CX_CONFORMANCE_DIR='$(TEST262)' cargo test --release --locked --lib conformance::
	@head -n 1 '$(TEST262)/report.txt'

## Run the TypeScript fixtures of esbuild and Babel: what TypeScript's own compiler accepts must compile, and do what its
## output does. They are source packages of Debian, so it needs `apt-get`, with Debian in its configuration. See
## tests/conformance/README.md.
FIXTURES = $(CACHE)/fixtures

fixtures: v8
	@mkdir -p '$(FIXTURES)/tools'
	cp tests/conformance/fixtures/*.* '$(FIXTURES)/tools'
	python3 '$(FIXTURES)/tools/fetch.py' '$(FIXTURES)/archives'
	cd '$(FIXTURES)/tools' && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	node --no-warnings --experimental-vm-modules '$(FIXTURES)/tools/cases.mjs' '$(FIXTURES)/archives' '$(FIXTURES)/cases'
	CX_CONFORMANCE_DIR='$(FIXTURES)/cases' cargo test --release --locked --lib conformance::
	@head -n 1 '$(FIXTURES)/cases/report.txt'

## Run each fuzz target for FUZZ_SECONDS, from its seeds and from what earlier runs found. Needs a nightly toolchain and
## `cargo install cargo-fuzz`. A short form of each is part of `test`.
FUZZ_SECONDS ?= 600
FUZZ_TARGETS ?= transpile program bounds nestings lines client_lines server_lines events challenges config schema arguments trace_context image restore

fuzz: export CARGO_TARGET_DIR = $(CACHE)/fuzz-target
fuzz:
	@for target in $(FUZZ_TARGETS); do \
	  mkdir -p fuzz/corpus/$$target; \
	  cargo +nightly fuzz run --sanitizer none $$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
	    -max_total_time=$(FUZZ_SECONDS) -timeout=25 -rss_limit_mb=4096 -print_final_stats=1 || exit 1; \
	done

## Check that the fuzz targets and the examples of their workspace compile. Needs no nightly toolchain.
fuzz-check:
	cd fuzz && CARGO_TARGET_DIR=$(CACHE)/fuzz-target cargo check --locked --lib --bins --examples

## Measure how the time to transpile grows with the source: each construct in a row and nested, up to 1 MB.
growth:
	cd fuzz && CARGO_TARGET_DIR=$(CACHE)/fuzz-target cargo run --release --locked --example growth row
	cd fuzz && CARGO_TARGET_DIR=$(CACHE)/fuzz-target cargo run --release --locked --example growth nested

## Compare the behavior of generated programs, compiled by cx and by TypeScript's own compiler.
PROGRAMS ?= 5000
differential:
	cd fuzz/differential && npm ci --ignore-scripts
	cd fuzz && CARGO_TARGET_DIR=$(CACHE)/fuzz-target cargo run --release --locked --example generate $(PROGRAMS) $(SEED) | \
	  node differential/compare.mjs
