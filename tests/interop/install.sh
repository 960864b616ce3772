#!/bin/sh
# Installs the servers and clients of the interoperability tests, exactly as the lock files beside this script
# have them, and does nothing when they are there already.
#
#   tests/interop/install.sh [DIRECTORY [all]]
#
# DIRECTORY is $CX_INTEROP_DIR if it is not given, and cx/interop in the user's cache if neither is.
# The tests look in the same places. Without `all` it leaves out the agent frameworks that only `make frameworks`
# needs. No package's install script is run.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
directory=${1:-${CX_INTEROP_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cx/interop}}
python=${PYTHON:-python3}

# Concurrent runs take turns; the second finds everything done. The kernel frees the lock with the
# process, so that a killed run blocks no other.
lock() {
    mkdir -p "$directory"
    exec 9>"$directory/lock"
    if command -v flock >/dev/null; then
        flock 9
    fi
}

# Installs a part, unless it is there: `part FUNCTION PLACE LOCK_FILE...`. What was installed is known by the lock
# files and by the interpreters, which the results depend on.
part() {
    function=$1 place=$2
    shift 2
    wanted=$( (cd "$here" && cat "$@"
        node --version
        "$python" --version) | sha256sum)
    if is_installed; then
        return
    fi
    lock
    if is_installed; then
        return
    fi
    # The mark is written last, so that a run that was interrupted is started anew.
    rm -rf "$place/installed" "$place/node" "$place/python"*
    mkdir -p "$place"
    "$function"
    printf '%s\n' "$wanted" > "$place/installed"
    echo "installed in $place" >&2
}

is_installed() {
    [ -f "$place/installed" ] && [ "$(cat "$place/installed")" = "$wanted" ]
}

# `install_node FOLDER [OPTION...]`: the packages of the lock file in this folder.
install_node() {
    mkdir "$place/node"
    cp "$here/$1/package.json" "$here/$1/package-lock.json" "$place/node/"
    shift
    (cd "$place/node" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error "$@")
}

# `install_python NAME LOCK_FILE`: an environment of this name. The lock files are complete, and pip's own resolver
# does not find a package that another one asks for with extras.
install_python() {
    "$python" -m venv "$place/$1"
    "$place/$1/bin/python" -m pip install --quiet --disable-pip-version-check \
        --no-deps --require-hashes --only-binary :all: -r "$here/$2"
}

servers_and_clients() {
    install_node .
    install_python python requirements.txt
    install_python python-old requirements-old.txt
}

frameworks() {
    install_python python frameworks/first.txt
}

telemetry() {
    install_python python telemetry/requirements.txt
}

schemas() {
    install_python python schemas/requirements.txt
}

conformance_suite() {
    install_node conformance
}

more_frameworks() {
    # One framework's optional packages are another JavaScript engine.
    install_node frameworks --omit=optional
    install_python python-1 frameworks/sdk-1.txt
    install_python python-2 frameworks/sdk-2.txt
}

type_checkers() {
    install_node types
}

# Debian's programs that tests start: Prometheus with promtool, and Chromium. Elsewhere they have to be on the PATH.
debian_packages() {
    missing=
    command -v prometheus >/dev/null && command -v promtool >/dev/null || missing="prometheus"
    command -v chromium >/dev/null || missing="$missing chromium fonts-dejavu-core"
    [ -n "$missing" ] || return 0
    if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
        echo "please install:" $missing >&2
        return 0
    fi
    lock
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null; }
}

debian_packages
part servers_and_clients "$directory" package-lock.json requirements.txt requirements-old.txt
part frameworks "$directory/frameworks" frameworks/first.txt
part telemetry "$directory/telemetry" telemetry/requirements.txt
part schemas "$directory/schemas" schemas/requirements.txt
part conformance_suite "$directory/conformance" conformance/package-lock.json
part type_checkers "$directory/types" types/package-lock.json
if [ "${2:-}" = all ]; then
    part more_frameworks "$directory/more-frameworks" frameworks/package-lock.json frameworks/sdk-1.txt frameworks/sdk-2.txt
fi
