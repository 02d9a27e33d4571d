#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other, each for FUZZTIME
# (default 1m; 1000x counts executions instead). Arguments narrow the packages
# (default ./...). Stops at the first crash, whose input the go command keeps
# under testdata/fuzz.
set -euo pipefail

fuzztime=${FUZZTIME:-1m}
[ $# -gt 0 ] || set -- ./...

# `go test -list` prints the targets of a package, then its "ok" line.
listing=$(go test -list '^Fuzz' "$@") || {
	printf '%s\n' "$listing" >&2
	exit 1
}

ran=0
targets=()
while read -r word package _; do
	case $word in
	Fuzz*) targets+=("$word") ;;
	ok)
		for target in "${targets[@]}"; do
			echo "fuzz: $package $target for $fuzztime"
			go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$package"
			ran=$((ran + 1))
		done
		targets=()
		;;
	esac
done <<<"$listing"

echo "fuzz: $ran targets"
[ "$ran" -gt 0 ]
