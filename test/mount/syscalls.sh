#!/bin/sh
# Builds libfuse's own test of system calls (test/test_syscalls.c, GPL) out of Debian's source package fuse3, as the
# program PROGRAM. Where that is there already, nothing happens.
#
#	syscalls.sh PROGRAM
set -eu
program=$1
[ ! -x "$program" ] || exit 0
sh "$(dirname "$0")/../support/debian-source.sh" "$program.src" fuse3 bookworm '*/test/test_syscalls.c' '*/include'
# What its build would find out about this system: it needs only one answer.
: >"$program.src/fuse_config.h"
cc -DHAVE_COPY_FILE_RANGE -I"$program.src" -I"$program.src/include" -o "$program.new" "$program.src/test/test_syscalls.c" 2>"$program.log" ||
	{ cat "$program.log" >&2; exit 1; }
rm -rf "$program.src" "$program.log"
mv "$program.new" "$program"
