#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME each (default 1m; 1000x counts
# executions instead), one on each processor at a time. Arguments narrow the packages
# (default ./...). A crash does not stop the others; the script ends with 1 then, and
# the go command keeps the input under testdata/fuzz.
#
# What a target has found that reaches new code is in the go command's cache, and every
# later run on this machine begins with it. KEEP=1 copies the newest short ones to
# testdata/fuzz too, where they are part of the tests for everybody.
set -euo pipefail

export FUZZTIME=${FUZZTIME:-1m} KEEP=${KEEP:-}
self=$(realpath "${BASH_SOURCE[0]}")
export self
# How many inputs of a target KEEP=1 keeps, and of how many bytes at most.
export most=16 longest=600
[ $# -gt 0 ] || set -- ./...

# keep PACKAGE TARGET fills the target's folder below testdata/fuzz.
keep() {
	local from to name
	from=$(go env GOCACHE)/fuzz/$1/$2
	to=$(go list -f '{{.Dir}}' "$1")/testdata/fuzz/$2
	[ -d "$from" ] || return 0
	mkdir -p "$to"
	find "$from" -type f -size -"$((longest + 1))"c -printf '%T@ %f\n' | sort -rn | cut -d' ' -f2 | while read -r name; do
		[ "$(find "$to" -type f | wc -l)" -lt "$most" ] || break
		cp -n "$from/$name" "$to/$name"
	done
}

# fuzz PACKAGE TARGET runs one target, and shows its output whole: others run beside it.
# An input that reaches new code is made smaller for 100 runs only: by default for a minute,
# and a target whose time is over meanwhile fails, with nothing found.
fuzz() {
	local out status=0
	out="fuzz: $1 $2 for $FUZZTIME
$(go test -vet off -run '^$' -fuzz "^$2\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 100x -parallel 1 "$1" 2>&1)" || status=1
	# A shell writes line by line: without a lock two targets' outputs would mix.
	(flock 9 && printf '%s\n' "$out") 9<"$self"
	[ -z "$KEEP" ] || keep "$1" "$2"
	return "$status"
}
export -f keep fuzz

# `go test -list` prints the targets of a package, then its "ok" line.
listing=$(go test -list '^Fuzz' "$@") || {
	printf '%s\n' "$listing" >&2
	exit 1
}

all=()
targets=()
while read -r word package _; do
	case $word in
	Fuzz*) targets+=("$word") ;;
	ok)
		for target in "${targets[@]}"; do all+=("$package" "$target"); done
		targets=()
		;;
	esac
done <<<"$listing"

[ "${#all[@]}" -gt 0 ] || {
	echo "fuzz: 0 targets"
	exit 1
}
status=0
printf '%s\n' "${all[@]}" | xargs -n 2 -P "$(nproc)" bash -c 'fuzz "$1" "$2"' fuzz || status=1
echo "fuzz: $((${#all[@]} / 2)) targets"
exit "$status"
