#!/usr/bin/env bash
# The part of bare.sh that runs in the minimal Debian: the README's first command,
# then what CI runs, each with empty caches; then what was seen.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[ $$ -eq 1 ] || {
	echo "inbare: this is started by bare.sh, in name spaces of its own" >&2
	exit 2
}

address=127.0.0.1 port=8080 # of dibs dev
minutes() { echo "$(($1 / 60)) min $(($1 % 60)) s"; }
installed() { dpkg-query -W -f '${Package}\n' | sort; }

# readyz prints the status of /readyz. There is no curl yet.
readyz() (
	exec 3<>"/dev/tcp/$address/$port"
	printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3
	read -r -t 5 _ status _ <&3
	echo "$status"
) 2>/dev/null

# await_dev waits until the process serves; 20 minutes are enough to compile it.
await_dev() {
	until [ "$(readyz)" = 200 ]; do
		kill -0 "$1" 2>/dev/null || return 1
		[ $SECONDS -lt 1200 ] || return 1
		sleep 0.2
	done
}

# first_command sets dev to what the README's first command took until it served.
first_command() {
	local job took modules verdict=0
	SECONDS=0
	set -m # A process group of its own, as a terminal gives it, to be interrupted.
	go run ./cmd/dibs dev >/tmp/dev.log 2>&1 &
	job=$!
	set +m
	await_dev $job || verdict=1
	took=$(minutes $SECONDS)
	kill -INT -- -$job 2>/dev/null || true
	# What go run ends with after an interrupt says nothing of what it ran.
	wait $job || true
	grep -q 'msg=stopped' /tmp/dev.log || verdict=1
	if [ $verdict -ne 0 ]; then
		tail -n 30 /tmp/dev.log >&2
		dev="FAILED after $took"
		return 1
	fi
	modules=$(find "$(go env GOMODCACHE)/cache/download" -name '*.zip' | wc -l)
	dev="/readyz was 200 after $took; $modules modules fetched, $(go list -deps ./cmd/dibs | wc -l) packages compiled"
}

if (exec 3<>"/dev/tcp/$address/$port") 2>/dev/null; then
	echo "bare: port $port of this machine is in use, and dibs dev serves there" >&2
	exit 1
fi
verdict=0
installed >/tmp/before
echo "bare: $(grep -oP '^PRETTY_NAME="\K[^"]+' /etc/os-release) $(cat /etc/debian_version), $(wc -l </tmp/before) packages, $(go env GOVERSION)"
first_command || verdict=1
echo "bare: go run ./cmd/dibs dev: $dev"

go clean -cache -modcache
SECONDS=0
if .ci/run; then
	run="passed"
else
	run="FAILED"
	verdict=1
fi
run="$run after $(minutes $SECONDS)"
installed | comm -13 /tmp/before - >/tmp/after

echo "bare: installed by need.sh and by what depends on each other:"
fold -s -w 116 <<<"$(paste -s -d ' ' /tmp/after)" | sed 's/^/  /'
echo "bare: go run ./cmd/dibs dev: $dev"
echo "bare: .ci/run: $run; $(wc -l </tmp/after) packages installed, $(apt-mark showmanual | grep -cxFf /tmp/after) of them by name"
exit $verdict
