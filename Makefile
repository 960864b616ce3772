# The two commands of the README, and what CI uses. Each sets up what it needs.

# Outside the checkout, so that a fresh clone on the same machine finds its dependencies built.
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cx
export CARGO_TARGET_DIR ?= $(CACHE)/target
export CX_INTEROP_DIR ?= $(CACHE)/interop

CX = $(CARGO_TARGET_DIR)/release/cx

.PHONY: demo test lint doc deny bench v8 interop

## Build the command and run the three example scripts against the example server.
demo: v8
	cargo build --release --locked --bin cx --example library-server
	@for script in search fan_out failing_tool; do \
	  printf '\n== examples/scripts/%s.ts\n' $$script; \
	  $(CX) run --mcp-config examples/mcp.json --stats examples/scripts/$$script.ts || exit 1; \
	done

## Run all tests: the library's, the integration tests with real MCP servers, the documentation's.
test: v8 interop
	cargo test --locked --no-run
	cargo test --locked

lint: v8
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings

doc: v8
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps

deny:
	cargo deny --locked check licenses bans sources

bench: v8
	cargo build --release --locked --example chaos
	cargo bench --locked

v8:
	@third_party/v8/install.sh

interop:
	@tests/interop/install.sh $(CX_INTEROP_DIR)
