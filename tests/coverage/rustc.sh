#!/usr/bin/env bash
# rustc for the crates of this workspace: code that counts how often it runs. See `measure.sh`.
exec "$@" -C instrument-coverage -C llvm-args=-runtime-counter-relocation \
  -C linker="${BASH_SOURCE[0]%/*}/link.sh" -C linker-flavor=gcc
