#!/bin/sh
# Starts the example server where cargo has put it, or says how to build it.
#
#   examples/library/start.sh TARGET_DIRECTORY
#
# It comes to the script as an argument because cx hands only a few variables of its environment down.
for profile in release debug; do
    server=$1/$profile/examples/library-server
    if [ -x "$server" ]; then
        # In the place of the shell, so that there is one process to stop.
        exec "$server"
    fi
done
echo "there is no library-server in $1; build it with: cargo build --release --example library-server" >&2
exit 1
