#!/bin/sh
# Fetches the fs tests of Node 20 (MIT licence) into DIR: test/parallel, test/sequential, test/common, test/fixtures.
#
#	fetch.sh DIR
#
# They come out of Debian's source package of nodejs. Where DIR is complete already, nothing happens.
set -eu
target=$1
[ ! -e "$target/test/parallel" ] || exit 0
sh "$(dirname "$0")/../support/debian-source.sh" "$target.new" nodejs trixie '*/LICENSE' '*/test/common' '*/test/fixtures' \
	'*/test/parallel/test-f[is]*' '*/test/sequential/test-f[is]*'
# The suite is CommonJS, whatever package this directory lies in.
echo '{ "type": "commonjs" }' >"$target.new/package.json"
mv "$target.new" "$target"
echo "conformance: fetched $(find "$target/test/parallel" "$target/test/sequential" -name 'test-*' | wc -l) files of tests" >&2
