#!/bin/sh
# Installs the servers and clients of the interoperability tests, exactly as the lock files beside this script
# have them, and does nothing when they are there already.
#
#   tests/interop/install.sh [DIRECTORY]
#
# DIRECTORY is $CX_INTEROP_DIR if it is not given, and cx/interop in the user's cache if neither is.
# The tests look in the same places. No package's install script is run.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
directory=${1:-${CX_INTEROP_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cx/interop}}
python=${PYTHON:-python3}

# What was installed is known by the lock files and by the interpreters, which the results depend on.
wanted=$( (cat "$here/package-lock.json" "$here/conformance/package-lock.json" "$here/requirements.txt" "$here/requirements-old.txt"
    node --version
    "$python" --version) | sha256sum)
is_installed() {
    [ -f "$directory/installed" ] && [ "$(cat "$directory/installed")" = "$wanted" ]
}
if is_installed; then
    exit 0
fi

# Two runs at once take turns; the second finds everything done. The kernel frees the lock with the
# process, so that a run that was killed blocks nobody.
mkdir -p "$directory"
exec 9>"$directory/lock"
if command -v flock >/dev/null; then
    flock 9
fi
if is_installed; then
    exit 0
fi

# The mark is written last, so that a run that was interrupted is started anew.
rm -rf "$directory/installed" "$directory/node" "$directory/conformance" "$directory/python" "$directory/python-old"

install_node() {
    mkdir "$directory/$1"
    cp "$2/package.json" "$2/package-lock.json" "$directory/$1/"
    (cd "$directory/$1" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
}
install_node node "$here"
install_node conformance "$here/conformance"

install_python() {
    "$python" -m venv "$directory/$1"
    "$directory/$1/bin/python" -m pip install --quiet --disable-pip-version-check \
        --require-hashes --only-binary :all: -r "$here/$2"
}
install_python python requirements.txt
install_python python-old requirements-old.txt

printf '%s\n' "$wanted" > "$directory/installed"
echo "installed the interoperability servers and clients in $directory" >&2
