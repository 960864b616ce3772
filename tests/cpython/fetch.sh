#!/bin/sh
# Fetches CPython 3.14's own tests by Debian's apt, into DIR and with a state of apt in DIR: nothing is installed.
# Prints the directory of the `test` package. Exit status 77: they cannot be had here, with the reason.
#
#   fetch.sh DIR
#
# They come from Debian's unstable, from the mirror that this machine's apt uses; its version moves on.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: fetch.sh DIR" >&2
    exit 2
fi
mkdir -p "$1"
dir=$(cd "$1" && pwd)
tests=$dir/root/usr/lib/python3.14/test

skip() {
    echo "SKIP: $1" >&2
    exit 77
}

if [ -f "$tests/support/__init__.py" ]; then
    echo "$tests"
    exit 0
fi
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip "apt-get and dpkg-deb are Debian's; they are not here"

keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -f "$keys" ] || skip "Debian's keys are not here: $keys, of the package debian-archive-keyring"
# The mirror of this machine: what offers the package base-files for its own release.
mirror=$(apt-get indextargets --format '$(SITE) $(REPO_URI) $(CREATED_BY) $(ORIGIN) $(LABEL)' 2>/dev/null |
    awk '$3 == "Packages" && $4 == "Debian" && $5 == "Debian" { print $2; exit }')
[ -n "$mirror" ] || skip "apt has no source of Debian's, or its lists are empty: apt-get update"

mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/parts" "$dir/state"
echo "deb [signed-by=$keys] $mirror sid main" >"$dir/sources.list"
cat >"$dir/apt.conf" <<END
Dir::Etc::sourcelist "$dir/sources.list";
Dir::Etc::sourceparts "$dir/parts";
Dir::State::lists "$dir/lists";
Dir::Cache "$dir/cache";
APT::Sandbox::User "";
END

export APT_CONFIG="$dir/apt.conf"
# With `Any`, lists that cannot be fetched are an error, not a warning.
apt-get -qq -o APT::Update::Error-Mode=any update >"$dir/log" 2>&1 || skip "the lists of $mirror cannot be had: $(tail -1 "$dir/log")"
cd "$dir"
# `test.support` is in the package of the library.
apt-get -qq download libpython3.14-testsuite libpython3.14-stdlib >>"$dir/log" 2>&1 || skip "no package of the tests: $(tail -1 "$dir/log")"
for package in libpython3.14-*.deb; do
    echo "$package" >&2
    dpkg-deb -x "$package" root
done
[ -f "$tests/support/__init__.py" ] || { echo "the packages have no usr/lib/python3.14/test/support" >&2; exit 1; }
echo "$tests"
