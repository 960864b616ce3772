#!/usr/bin/env bash
# Runs all tests with instrumented code, and prints the line coverage of each folder of `src`.
#
# Most code runs in child processes that end with `_exit` or by a signal, so their counts are kept only in LLVM's
# continuous mode, in which a file is the memory of the counters. cargo-llvm-cov has no such mode, and instruments the
# dependencies too, all of which would be compiled again.
#
# The name of that file is part of each program, and not only in the environment: tests start `cx` without variables, and
# workers have none.
#
# With Rust 1.95 on two cores, loaded by other work, it took 20 minutes.
#
# LLVM's tools have to read what rustc writes: those of its own version do, and Debian's of version 19 did with Rust 1.95.
set -euo pipefail
cd "$(dirname "$0")/../.."

tool() {
  for name in "$1" "$1-22" "$1-21" "$1-20" "$1-19"; do
    command -v "$name" >/dev/null || continue
    # Old ones do not know the option.
    version=$("$name" --version 2>/dev/null | sed -n 's/.*LLVM version \([0-9]*\).*/\1/p')
    if [ "${version:-0}" -ge 19 ]; then
      echo "$name"
      return
    fi
  done
  echo "$1 of LLVM 19 or later is needed, for example from the package llvm-19" >&2
  return 1
}
profdata=$(tool llvm-profdata)
cov=$(tool llvm-cov)

out=${CARGO_TARGET_DIR:-target}/coverage
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)

# One file for each program, shared by all its processes.
export CX_COVERAGE_NAME=$out/name.o
cc -x assembler -c -o "$CX_COVERAGE_NAME" - <<END
.section .rodata.__llvm_profile_filename,"aG",@progbits,__llvm_profile_filename,comdat
.globl __llvm_profile_filename
.hidden __llvm_profile_filename
.type __llvm_profile_filename, @object
__llvm_profile_filename:
.asciz "$out/%c%m.profraw"
.size __llvm_profile_filename, . - __llvm_profile_filename
.section .note.GNU-stack, "", @progbits
END

# Only the crates of the workspace are compiled again.
export RUSTC_WORKSPACE_WRAPPER=$PWD/tests/coverage/rustc.sh
# Build scripts and procedural macros are instrumented too; their counts go to another file.
LLVM_PROFILE_FILE=$out/build.profraw cargo build --locked --bin cx --examples --message-format json >"$out/built.json"
LLVM_PROFILE_FILE=$out/build.profraw cargo test --locked --lib --test it --no-run --message-format json >>"$out/built.json"
rm -f "$out/build.profraw"
# The file is written whole here: a test that bounds the size of files runs `cx` too.
"${CARGO_TARGET_DIR:-target}/debug/cx" --version

cargo test --locked --lib --test it --no-fail-fast -- "$@" | tee "$out/tests.txt" || failed=1
"$profdata" merge --sparse --failure-mode=all "$out"/*.profraw -o "$out/all.profdata"
tests/coverage/report.py "$cov" "$out" || failed=1
exit "${failed:-0}"
