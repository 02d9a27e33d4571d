#!/usr/bin/env bash
# Makes the files beside it with a dibs of another version: make.sh DIBS.
# It needs curl, jq, redis-server, redis-cli and sqlite3, and port 18181.
#
# Per engine: a sale that is paid, coupons with codes, a red packet. First some
# claims that are settled; then more while the ledger is locked, and the process is
# killed, so that they are in the journal alone. claims.jsonl has
# every claim as that version answered it, with the key of its request.
set -euo pipefail
dibs=$(realpath "$1") here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(mktemp -d)
trap 'kill -9 $(jobs -p) 2>/dev/null; rm -rf "$top"' EXIT
export DIBS_URL=http://127.0.0.1:18181 DIBS_LISTEN=127.0.0.1:18181 DIBS_ADMIN_KEY=upgrade-admin-key-0001
export DIBS_JWT_SECRET=0123456789abcdef0123456789abcdef

serve() {
	"$dibs" serve --data "$data" "$@" 2>>"$top/log" &
	node=$!
	until curl -sf $DIBS_URL/readyz >"$top/readyz"; do sleep 0.2; done
}
# stop SIGNAL, and waits for the end.
stop() {
	kill "-$1" $node
	wait $node || true
}
# claim CAMPAIGN USER KEY
claim() {
	curl -sS -X POST -H "Authorization: Bearer ${tokens[$2]}" -H "Idempotency-Key: $3" "$DIBS_URL/v1/campaigns/$1/claims" |
		jq -c --arg key "$3" '{key: $key, id, campaign_id, user_id, status, items, amount}' | tee -a "$out/claims.jsonl"
}
# some FROM TO: each of these users claims of everything.
some() {
	for i in $(seq "$1" "$2"); do
		for c in phones spring rain; do claim $c "u$i" "press-$c-$i"; done
	done
}
# walk FOLDER [ARGUMENTS OF SERVE]
walk() {
	out=$here/$1 data=$top/$1
	shift
	mkdir -p "$out" && rm -f "$out"/*
	serve "$@"
	"$dibs" product create --id phone --name Phone --price 99900 --currency CNY
	"$dibs" campaign create --id phones --title Phones --product phone --units 10 --starts 2026-01-01T00:00:00Z --ends 2036-01-01T00:00:00Z --publish
	seq -f 'SPRING-%g' 1 8 | sed '1i code' >"$top/codes.csv"
	"$dibs" campaign create --id spring --kind coupon --title Spring --import --starts 2026-01-01T00:00:00Z --ends 2036-01-01T00:00:00Z
	"$dibs" coupon import spring "$top/codes.csv"
	"$dibs" campaign publish spring
	"$dibs" redpacket create --id rain --title Rain --total 10000 --currency CNY --count 6 --starts 2026-01-01T00:00:00Z --ends 2036-01-01T00:00:00Z --publish
	some 1 3
	sleep 1
	stop TERM
	serve "$@"
	# Somebody else writes to the ledger meanwhile: nothing can be settled.
	coproc lock { sqlite3 "$data/ledger.db"; }
	local locked=$lock_PID
	echo 'BEGIN IMMEDIATE; SELECT 1;' >&"${lock[1]}"
	read -r <&"${lock[0]}"
	some 4 5
	stop KILL
	kill "$locked"
	wait "$locked" || true
	sqlite3 "$data/ledger.db" .dump >"$out/ledger.sql"
	if [ -e "$data/journal.db" ]; then sqlite3 "$data/journal.db" .dump >"$out/journal.sql"; fi
}

# Made before: it must not take longer to claim than to settle.
declare -A tokens
for i in 1 2 3 4 5; do tokens[u$i]=$("$dibs" token --user "u$i"); done

walk memory
mkdir "$top/redis"
redis-server --port 18182 --bind 127.0.0.1 --dir "$top/redis" --save '' --appendonly yes --appendfsync always --aof-use-rdb-preamble no >"$top/redis.log" &
until redis-cli -p 18182 ping >"$top/ping" 2>&1; do sleep 0.1; done
walk redis --engine redis://127.0.0.1:18182/0
# Rewritten, the log is one command for each key, as text.
redis-cli -p 18182 bgrewriteaof
until redis-cli -p 18182 info persistence | grep -q aof_rewrite_in_progress:0; do sleep 0.1; done
cat "$top"/redis/appendonlydir/*.base.aof >"$here/redis/redis.resp"
"$dibs" version
