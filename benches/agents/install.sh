#!/bin/sh
# Installs what the benchmark needs beside the cache of cx, from the lock files here. No package's install script is run.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
place=${XDG_CACHE_HOME:-$HOME/.cache}/cx/agents
wanted=$(cat "$here/requirements.txt" "$here/package-lock.json" | sha256sum)
if [ "$(cat "$place/installed" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$place"
    mkdir -p "$place"
    "${PYTHON:-python3}" -m venv "$place/python"
    "$place/python/bin/python" -m pip install --quiet --disable-pip-version-check \
        --no-deps --require-hashes --only-binary :all: -r "$here/requirements.txt"
    cp "$here/package.json" "$here/package-lock.json" "$here/tokens.mjs" "$place/"
    (cd "$place" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
    printf '%s\n' "$wanted" > "$place/installed"
fi
