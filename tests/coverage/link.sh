#!/usr/bin/env bash
# The linker of `rustc.sh`. The first object that defines the name of the file of counts is the one that is used, and
# rustc's own come after this one.
exec cc ${CX_COVERAGE_NAME:+"$CX_COVERAGE_NAME"} "$@"
