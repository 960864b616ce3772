#!/bin/sh
# Runs the benchmarks with the program that is named, and writes the charts and tables of the documentation:
#
#   benches/agents/run.sh PATH_TO_CX
set -eu

cx=$1
here=$(cd "$(dirname "$0")" && pwd)
place=${XDG_CACHE_HOME:-$HOME/.cache}/cx/agents
"$here/install.sh"
for category in base long_context miss_func miss_param; do
    "$place/python/bin/python" "$here/run.py" "$cx" --category "$category" --tokens "$place/tokens.mjs" \
        --figures "$here/figures/$category.json"
done
"$place/python/bin/python" "$here/dojo.py" "$cx" --tokens "$place/tokens.mjs" --figures "$here/figures/agentdojo.json"
"$place/python/bin/python" "$here/tau.py" "$cx" --tokens "$place/tokens.mjs" --figures "$here/figures/tau2.json"
"$place/python/bin/python" "$here/recorded.py" "$cx" --tokens "$place/tokens.mjs" \
    --figures "$here/figures/recorded.json"
"$place/python/bin/python" "$here/calls.py" "$cx"
"$place/python/bin/python" "$here/chart.py"
"$place/python/bin/python" "$here/tables.py"
