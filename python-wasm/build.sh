#!/bin/sh
# Builds the Python component: python.wasm.zst and its hash.
#
#   build.sh            build, and replace the committed component
#   build.sh --check    build apart, and fail unless the committed component is the same (see README.md for how far)
#   build.sh --to FILE  build only, uncompressed, into FILE
#
# Needs Python 3.9 or newer and a package index. The tools and packages are those of requirements.txt and packages.txt,
# by hash. CX_PYTHON_TOOLS names a directory that keeps the tools between builds; without it they are fetched each time.
set -eu
unset PYTHONPATH PYTHONHOME
export LC_ALL=C TZ=UTC
from=$(pwd)
cd "$(dirname "$0")"
mode=${1:-build}
case $mode in
    build | --check) ;;
    --to) out=${2:?"build.sh --to: expected a file to write"}
        case $out in /*) ;; *) out=$from/$out ;; esac ;;
    *) echo "build.sh: unknown option $mode: expected --check or --to FILE" >&2; exit 2 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
tools=${CX_PYTHON_TOOLS:-$work/tools}
stamp=$(cat requirements.txt packages.txt | cksum)
if [ "$(cat "$tools/stamp" 2>/dev/null)" != "$stamp" ]; then
    rm -rf "$tools/stamp" "$tools/venv" "$tools/guest"
    mkdir -p "$tools"
    "${PYTHON:-python3}" -m venv "$tools/venv"
    "$tools/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
        --require-hashes --requirement requirements.txt
    # For the interpreter inside, not for the one that builds.
    "$tools/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-compile --only-binary :all: \
        --implementation cp --python-version 3.14 --abi cp314 --platform manylinux2014_x86_64 \
        --target "$tools/guest/lib/python3.14/site-packages" --require-hashes --requirement packages.txt
    echo "$stamp" >"$tools/stamp"
fi

# A copy: what Python leaves beside the sources must not get in.
mkdir "$work/app"
cp -R guest/. "$work/app"
find "$work/app" -name __pycache__ -type d -prune -exec rm -rf {} +
wasm=$work/python.wasm
componentize() {
    LD_PRELOAD=$fixed VIRTUAL_ENV="$tools/guest" "$tools/venv/bin/componentize-py" --quiet \
        --wit-path "$1" --world "$2" componentize "$3" --python-path "$4" --output "$5"
}
# Not the same bytes, but the same behavior, where there is no C compiler or no preloading.
fixed=
if [ "$(uname -s)" = Linux ] && "${CC:-cc}" -shared -fPIC -O1 -o "$work/fixed.so" fixed.c; then
    fixed=$work/fixed.so
else
    echo "build.sh: no C compiler for Linux: two builds will differ, in the secret of hashes and more" >&2
fi
# Two steps, so that compiling the library leaves nothing in the component's memory: see bundle/bundle.py.
mkdir "$work/bundle"
cp bundle/bundle.py "$work/bundle"
echo 'package cx:bundle; world bundle {}' >"$work/bundle/bundle.wit"
componentize "$work/bundle/bundle.wit" bundle bundle "$work/bundle" "$work/bundle.wasm"
mv "$work/bundle/library.index" "$work/bundle/library.block" "$work/app"
componentize ../src/engine/python/wit guest app "$work/app" "$wasm"

if [ "$mode" = --to ]; then
    cp "$wasm" "$out"
    exit
fi
"$tools/venv/bin/python" - "$mode" "$wasm" <<'PYTHON'
import hashlib
import sys

import zstandard

# What may differ: leftovers in memory that nothing reads. Two builds on one machine differ in some 20 bytes.
LEFTOVERS = 256

mode, path = sys.argv[1:]
with open(path, "rb") as file:
    component = file.read()
if mode == "--check":
    with open("python.wasm.zst", "rb") as file:
        packed = file.read()
    with open("python.wasm.zst.sha256") as file:
        if file.read().split()[0] != hashlib.sha256(packed).hexdigest():
            sys.exit("build.sh: python.wasm.zst does not have the hash in python.wasm.zst.sha256: commit both files")
    committed = zstandard.ZstdDecompressor().decompress(packed)
    differing = sum(a != b for a, b in zip(committed, component))
    if len(committed) != len(component) or differing > LEFTOVERS:
        sys.exit(
            "build.sh: the committed component is not what this source builds: "
            f"{len(committed)} and {len(component)} bytes, {differing} differ; run build.sh and commit both files"
        )
    print(f"the committed component is what this source builds: {differing} of {len(component)} bytes differ")
else:
    # The long window finds what is twice in it: the code of a module that is imported is also in the library.
    parameters = zstandard.ZstdCompressionParameters.from_level(22, window_log=26, enable_ldm=True, write_checksum=True)
    packed = zstandard.ZstdCompressor(compression_params=parameters).compress(component)
    with open("python.wasm.zst", "wb") as file:
        file.write(packed)
    with open("python.wasm.zst.sha256", "w") as file:
        file.write(f"{hashlib.sha256(packed).hexdigest()}  python.wasm.zst\n")
    print(f"component: {len(component)} bytes, compressed: {len(packed)} bytes")
PYTHON
if [ "$mode" = build ]; then
    # The licenses of the packages ask for their text to go along.
    (
        cd "$tools/guest/lib/python3.14/site-packages"
        find ./*.dist-info -type f \( -iname 'licen*' -o -iname 'copying*' \) | sort | while read -r file; do
            printf '==== %s\n\n' "${file#./}"
            cat "$file"
            printf '\n'
        done
    ) >LICENSES
fi
