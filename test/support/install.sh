#!/bin/sh
# Installs the Debian packages that the tests need beside Node, where they are missing: strace (kills a
# process at each of its system calls) and git (makes and reads real checkouts). Does nothing where all are there.
set -eu
missing=
for program in strace git; do
	command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
	echo "The tests need these programs, and only root on Debian can install them from here:$missing" >&2
	exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
# Each program is in the package of its name.
# shellcheck disable=SC2086
apt-get -qq install --no-install-recommends $missing ca-certificates >/dev/null
