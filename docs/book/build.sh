#!/usr/bin/env bash
# Builds the book into DIRECTORY and checks the pages: docs/book/build.sh DIRECTORY
#
# Pages link to one another, and to files outside docs/, by relative paths. So that these work in the book too, mdBook
# gets a copy of the repository's Markdown and of the other files that pages link to, in the same layout. docs/SUMMARY.md
# is relative to docs/, as every page there; mdBook reads it from the root.
set -euo pipefail
[ $# = 1 ] || { echo "usage: $0 DIRECTORY" >&2; exit 2; }
output=$(realpath -m "$1")
cd "$(dirname "$0")/../.."

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/src"
git ls-files -z --cached --others --exclude-standard -- \
  '*.md' '*.svg' docs/observability examples/recipes examples/scripts |
  grep -zv '^fuzz/seeds/' | xargs -0 cp --parents -t "$stage/src"
cp docs/book/book.toml docs/book/book.css "$stage"
sed -e 's#](\.\./#](#' -e t -e 's#](#](docs/#' docs/SUMMARY.md > "$stage/src/SUMMARY.md"

rm -rf "$output"
# mdBook warns of pages that a reader would see wrong: of text that it took for a tag, for example.
MDBOOK_LOG=warn mdbook build --dest-dir "$output" "$stage" 2>&1 | tee "$stage/log"
[ ! -s "$stage/log" ] || { echo "mdBook has warnings" >&2; exit 1; }
python3 docs/book/check.py "$output"
