#!/bin/sh
# Runs the benchmark with the program that is named, and draws the charts of the documentation:
#
#   benches/agents/run.sh PATH_TO_CX
#
# Installs what it needs beside the cache of cx, from the lock files here. No package's install script is run.
set -eu

cx=$1
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
for category in base long_context; do
    "$place/python/bin/python" "$here/run.py" "$cx" --category "$category" --tokens "$place/tokens.mjs" \
        --figures "$here/figures/$category.json"
done
"$place/python/bin/python" "$here/chart.py"
