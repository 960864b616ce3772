#!/usr/bin/env bash
# Puts V8's static library where the build script of the `v8` crate looks for it. See README.md.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
archive=librusty_v8_simdutf_release_x86_64-unknown-linux-gnu.a

if [ "$(uname -sm)" != "Linux x86_64" ]; then
  echo "v8: the crate's build script downloads the archive for $(uname -sm)"
  exit 0
fi

version=$(awk '$0 == "name = \"v8\"" { getline; gsub(/version = |"/, ""); print }' "$root/Cargo.lock")
url="https://github.com/denoland/rusty_v8/releases/download/v$version/$archive.gz"
directory="${CARGO_HOME:-$HOME/.cargo}/.rusty_v8"
# The build script's rule: the URL with every character outside A-Z a-z 0-9 replaced.
target="$directory/$(printf %s "$url" | tr -c 'A-Za-z0-9' _)"
[ -s "$target" ] && exit 0

mkdir -p "$directory"
partial=$(mktemp "$directory/partial.XXXXXX")
trap 'rm -f "$partial"' EXIT

download() {
  command -v curl >/dev/null &&
    curl -fsSL --connect-timeout 5 --max-time 900 -o "$partial" "$url" 2>/dev/null &&
    # A sign-in page of the network is not an archive.
    [ "$(head -c 2 "$partial" | od -An -tx1 | tr -d ' \n')" = 1f8b ]
}

if download; then
  echo "v8: downloaded $version"
else
  echo "v8: the download site cannot be reached, unpacking the vendored archive"
  (cd "$here" && grep -F "$archive.xz" SHA256SUMS | sha256sum --check --quiet)
  # Python has a decoder where `xz` is not installed.
  if command -v xz >/dev/null; then
    xz -dc "$here/$archive.xz" > "$partial"
  else
    python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer)' \
      "$here/$archive.xz" > "$partial"
  fi
  expected=$(awk -v name="$archive" '$2 == name { print $1 }' "$here/SHA256SUMS")
  echo "$expected  $partial" | sha256sum --check --quiet
fi
# Whole or not at all: a half archive would fail in the linker, far from here.
mv "$partial" "$target"
