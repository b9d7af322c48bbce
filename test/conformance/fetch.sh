#!/bin/sh
# Fetches the fs tests of Node 20 (MIT licence) into DIR: test/parallel, test/sequential, test/common, test/fixtures.
#
#	fetch.sh DIR
#
# They come out of Debian's source package of nodejs, from the Debian mirror that this machine is set up with; a source
# list of our own is used for that, so the system's lists and caches stay as they are. Where DIR is complete already,
# nothing happens. DIR appears whole or not at all.
set -eu
target=$1
[ ! -e "$target/test/parallel" ] || exit 0

fail() {
	echo "conformance: $*" >&2
	exit 1
}
command -v apt-get >/dev/null 2>&1 || fail "Node's tests are fetched with apt-get, which is not here; run this on Debian"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || fail "$keyring is missing (package debian-archive-keyring)"

# Both formats of source lists; security and other suites live beside the archive, not in it.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
	grep -E '^(deb|URIs:) ' | grep -oE '(https?|file|mirror\+file):/[^ ]*/debian/?( |$)' | head -n 1 | tr -d ' ')
[ -n "$mirror" ] || fail "no Debian mirror in the system's apt sources"

mkdir -p "$(dirname "$target")"
work=$(mktemp -d "$target.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/tree"
echo "deb-src [signed-by=$keyring] $mirror trixie main" >"$work/sources"
cat >"$work/apt.conf" <<CONF
Dir::Etc::SourceList "$work/sources";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$work/lists";
Dir::Cache "$work";
APT::Sandbox::User "root";
CONF
export APT_CONFIG="$work/apt.conf"
apt-get -qq update
(cd "$work" && apt-get -qq source --download-only --tar-only nodejs)
tar -xf "$work"/nodejs_*.orig.tar.* -C "$work/tree" --strip-components=1 --wildcards \
	'*/LICENSE' '*/test/common' '*/test/fixtures' \
	'*/test/parallel/test-f[is]*' '*/test/sequential/test-f[is]*'
# The suite is CommonJS, whatever package this directory lies in.
echo '{ "type": "commonjs" }' >"$work/tree/package.json"
mv "$work/tree" "$target"
echo "conformance: fetched $(find "$target/test/parallel" "$target/test/sequential" -name 'test-*' | wc -l) files of tests" >&2
