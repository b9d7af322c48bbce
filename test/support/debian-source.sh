#!/bin/sh
# Unpacks a part of a Debian source package (its upstream tree, without Debian's patches) into DIR:
#
#	debian-source.sh DIR PACKAGE RELEASE [PATTERN…]
#
# PATTERNs are tar's, over names below the tree's own top directory; without any, all of it is unpacked. It comes from
# the Debian mirror that this machine is set up with; a source list of our own is used for that, so the system's lists and
# caches stay as they are. DIR must not exist, and appears whole or not at all.
set -eu
target=$1 package=$2 release=$3
shift 3

fail() {
	echo "debian-source: $*" >&2
	exit 1
}
command -v apt-get >/dev/null 2>&1 || fail "sources of $package are fetched with apt-get, which is not here; run this on Debian"
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
echo "deb-src [signed-by=$keyring] $mirror $release main" >"$work/sources"
cat >"$work/apt.conf" <<CONF
Dir::Etc::SourceList "$work/sources";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$work/lists";
Dir::Cache "$work";
APT::Sandbox::User "root";
CONF
export APT_CONFIG="$work/apt.conf"
apt-get -qq update
(cd "$work" && apt-get -qq source --download-only --tar-only "$package")
tar -xf "$work/$package"_*.orig.tar.* -C "$work/tree" --strip-components=1 --wildcards "$@"
mv "$work/tree" "$target"
