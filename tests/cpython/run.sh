#!/bin/sh
# Runs a sample of CPython's own tests inside of cx and compares what fails with expected.md.
#
#   run.sh DIR [options of run.py]        DIR: where the tests are kept, see fetch.sh
#
# Exit status 0: as expected, 1: not, 77: the tests cannot be had here.
set -eu

if [ $# -lt 1 ]; then
    echo "usage: run.sh DIR [--cx PROGRAM] [--only REGULAR-EXPRESSION] [--save FILE]" >&2
    exit 2
fi
here=$(dirname "$0")
tests=$("$here/fetch.sh" "$1")
shift
exec python3 "$here/run.py" "$tests" "$@"
