#!/usr/bin/env bash
# Packages every member of the workspace, and checks what would be published: its size, its lock file, and that it
# compiles from the files in the packages alone.
#
# `cargo package` could verify that itself, but it builds and links each package on its own. Here they are checked
# together, with the profiles and the lock file of the repository, so that dependencies are compiled as they are for the
# lints, and those that are there are used.
set -euo pipefail
cd "$(dirname "$0")/.."

# The limit of crates.io.
max_bytes=10485760

CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR
packages=$CARGO_TARGET_DIR/package
workspace=$packages/workspace

# The names and versions in a lock file.
versions() {
  awk -F '"' '/^name = / { name = $2 } /^version = "/ { print name, $2 }' "$1" | sort -u
}

rm -rf "$packages"
cargo package --locked --offline --workspace --no-verify --allow-dirty

mkdir -p "$workspace"
members=()
for crate in "$packages"/*.crate; do
  tar tzf "$crate"
  bytes=$(wc -c < "$crate")
  echo "$crate: $bytes bytes"
  if [ "$bytes" -gt "$max_bytes" ]; then
    echo "$crate: expected at most $max_bytes bytes" >&2
    exit 1
  fi
  tar xzf "$crate" -C "$workspace"
  member=$(basename "$crate" .crate)
  members+=("$member")
  # `cargo install --locked` uses the lock file in the package.
  others=$(comm -23 <(versions "$workspace/$member/Cargo.lock") <(versions Cargo.lock))
  if [ -n "$others" ]; then
    printf '%s: versions in its lock file that are not in the one of the repository:\n%s\n' "$crate" "$others" >&2
    exit 1
  fi
done

# A package depends on the others by their versions on crates.io. The unpacked ones stand in for those.
{
  echo '[workspace]'
  echo 'resolver = "3"'
  printf 'members = ['
  printf '"%s", ' "${members[@]}"
  printf ']\n\n[patch.crates-io]\n'
  for member in "${members[@]}"; do
    name=$(sed -n 's/^name = "\(.*\)"$/\1/p' "$workspace/$member/Cargo.toml" | head -n 1)
    if grep -qs "dependencies\.$name\]$" "$workspace"/*/Cargo.toml; then
      printf '%s = { path = "%s" }\n' "$name" "$member"
    fi
  done
  echo
  # Profiles of a member have no effect.
  awk '/^\[/ { is_profile = /^\[profile\./ } is_profile' Cargo.toml
} > "$workspace/Cargo.toml"
cp Cargo.lock "$workspace/Cargo.lock"

touch "$packages/unpacked"
cargo check --locked --offline --workspace --manifest-path "$workspace/Cargo.toml"

# Cargo refuses to publish a package whose build script writes beside its sources.
for member in "${members[@]}"; do
  changed=$(find "$workspace/$member" -type f -newer "$packages/unpacked")
  if [ -n "$changed" ]; then
    printf '%s: files that its build has changed:\n%s\n' "$member" "$changed" >&2
    exit 1
  fi
done
