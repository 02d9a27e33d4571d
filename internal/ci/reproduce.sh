#!/usr/bin/env bash
# Makes the release of the commit twice and compares every byte: in two folders of
# different names, with a build cache each, another umask, time zone, language and
# TMPDIR. Arguments are those of the release: -only linux_amd64 takes a sixth.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Named once: the branch may move on while this runs.
head=$(git rev-parse HEAD)
version=$(git describe --tags --always "$head") commit=${head:0:12} seconds=$(git log -1 --format=%ct "$head")
top=$(mktemp -d "${TMPDIR:-/tmp}/dibs-reproduce-XXXXXX")
trap 'chmod -R u+w "$top" && rm -rf "$top"' EXIT

# make_in FOLDER SETTING… unpacks the commit, without its repository, and makes its
# release there.
make_in() {
	local folder=$1
	shift
	mkdir -p "$folder/tmp" "$folder/src"
	git archive "$head" | tar -x -C "$folder/src"
	(cd "$folder/src" && env "$@" TMPDIR="$folder/tmp" GOTMPDIR="$folder/tmp" GOCACHE="$folder/cache" \
		go run ./internal/release -version "$version" -commit "$commit" -time "$seconds" -out "$folder/dist" "${args[@]}")
}
args=("$@")
(umask 022 && make_in "$top/one" TZ=UTC LC_ALL=C)
(umask 077 && make_in "$top/a longer name/two" TZ=Asia/Shanghai LC_ALL=C.UTF-8)

diff -r "$top/one/dist" "$top/a longer name/two/dist" || {
	echo "reproduce: the two releases of $version differ" >&2
	exit 1
}
(cd "$top/one/dist" && sha256sum --quiet -c SHA256SUMS && cat SHA256SUMS)
echo "reproduce: $version was made twice, in two places: every byte is the same"
