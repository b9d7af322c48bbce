#!/bin/sh
# Installs the Debian packages that the tests need beside Node, where they are missing: strace (kills a process at each of
# its system calls, and bears witness of what it looked at), git (makes and reads real checkouts), shells (complete words), and what real work
# is done with. Does nothing where all are there.
set -eu
missing=
# A program, and the package it is in.
while read -r program package; do
	command -v "$program" >/dev/null 2>&1 || missing="$missing $package"
done <<PROGRAMS
strace strace
git git
cc gcc
make make
vim vim
sqlite3 sqlite3
python3 python3
zsh zsh
fish fish
PROGRAMS
[ -e /usr/include/stdio.h ] || missing="$missing libc6-dev"
# Debian's Python leaves out what a venv begins with.
python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
	echo "Only root on Debian can install from here what some tests need, and skip without:$missing" >&2
	[ "${CI-}" != true ]
	exit
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
# shellcheck disable=SC2086
apt-get -qq install --no-install-recommends $missing ca-certificates >/dev/null
