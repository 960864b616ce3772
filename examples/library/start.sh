#!/bin/sh
# Starts the example server where cargo has put it, or says how to build it.
#
#   examples/library/start.sh TARGET_DIRECTORY
#
# The directory is an argument because cx passes only a few environment variables to a server. If the server is not
# there, it is looked for in the checkout's own `target` and where `make` builds.
checkout=$(cd "$(dirname "$0")/../.." && pwd)
for target in "$1" "$checkout/target" "${XDG_CACHE_HOME:-$HOME/.cache}/cx/target"; do
    for profile in release debug; do
        server=$target/$profile/library-server
        if [ -x "$server" ]; then
            # `exec` replaces the shell, so that there is one process to stop.
            exec "$server"
        fi
    done
done
echo "the example server is not built; run \`make demo\`, or \`cargo build --release -p library-server\`" >&2
exit 1
