#!/usr/bin/env bash
# Runs the long campaigns, one after the other, each with its own number of
# rounds, and says how each went and how long it took. Arguments name the ones to
# run (default: all); SOAK (default 300) sets the rounds; SOAK_LOGS is where each
# campaign's whole output goes. Ends with 1 when one of them failed.
set -uo pipefail

soak=${SOAK:-300}
logs=${SOAK_LOGS:-$(mktemp -d -t dibs-soak-XXXXXX)}
mkdir -p "$logs"

# name | package | tests | what is done
campaigns='
kills-sqlite|./cmd/dibs|^TestKill$|a node on SQLite killed under load, SOAK/3 times
kills-mariadb|./cmd/dibs|^TestKillMySQL$|a node on MariaDB killed under load, SOAK/3 times
kills-postgres|./cmd/dibs|^TestKillPostgres$|a node on PostgreSQL killed under load, SOAK/3 times
kills-life|./cmd/dibs|^TestKillLife|a node killed while claims are paid, cancelled, refunded, SOAK/6 and SOAK/15 times
kills-events|./cmd/dibs|^TestKillEvents|a node, and Redis, killed while events go to a stream and a webhook, SOAK/15 times on each ledger
kills-erasures|./cmd/dibs|^TestKillErasure|a node killed while users are erased, SOAK/18 users on each database
kills-packets|./cmd/dibs|^TestRedPacketKilled|a node killed while red packets are credited and closed, SOAK/21 and SOAK/57 times
push|./cmd/dibs|^TestPushKilled$|a node killed twice while it tells 200,000 followers
crowd|./cmd/dibs|^TestTenThousand$|10,000 users tap over WebSockets of a node that is killed
settler|./cmd/dibs|^TestSettlerKilled|of three nodes on Redis the one that settles killed under load, SOAK/3 times on each ledger
nodes|./cmd/dibs|Nodes|SettlerDies|Dump|three nodes: killed, drained, with Redis killed, with older dumps restored, up to SOAK/30 times
chaos|./cmd/dibs|^TestChaos$|Redis, the database and nodes killed, frozen, emptied, at two levels, SOAK/90 campaigns each
ledger-standby|./cmd/dibs|^TestStandby|a PostgreSQL primary killed under load and its standby promoted, asynchronous and synchronous, SOAK/30 times each
ledger-galera|./cmd/dibs|^TestGaleraDies$|the server of a Galera cluster that is written to killed under load, SOAK/15 times
ledger-collisions|./sqlledger|^TestGalera$|the same batch settled at three servers of a Galera cluster at once, SOAK times 60
redis-kills|./redisengine|^TestKilledServerLosesNothing$|Redis killed, SOAK times
redis-power|./redisengine|^TestPowerLoss|the power cut, always SOAK times, everysec SOAK/5
redis-disk|./redisengine|^TestStalledDisk$|a disk that stalls, SOAK/50 times
redis-memory|./redisengine|^(TestMemoryRunsOut|TestEmptyServerIsNeverNew|TestBusyServer)$|no memory, emptied, busy, up to SOAK/20 times
redis-network|./redisengine|^(TestToxics|TestLinearizableWithLostAnswers|TestLostAnswersAreFound|TestScriptsAreFlushedUnderLoad)$|bad links, lost answers, SOAK histories
redis-failover|./redisengine|^(TestStaleReplicaIsPromoted|TestReplicatedSurvivesItsMaster|TestFrozenMasterComesBack)$|a master lost, with Sentinel, SOAK/20 times
redis-cluster|./redisengine|^(TestClusterFailsOver|TestSlotsMigrateUnderLoad|TestContractOnCluster|TestContractThroughSentinel)$|a cluster: masters lost, slots moved, up to SOAK/15 times
simulation|./internal/simulation|^Test(Soak|Planted)$|whole nodes simulated, SOAK*334 seeds, and every planted fault found
rehearsal|./lab/rehearsal|^Test(ManyUsers|OneUser)$|the two loads of the articles at full size
stalls|./sqlledger|^TestServerStalledTransaction$|a process frozen in a transaction
'

wanted() {
	[ $# -gt 1 ] || return 0
	local name=$1 one
	shift
	for one in "$@"; do [ "$one" = "$name" ] && return 0; done
	return 1
}

# run NAME PACKAGE TESTS WHAT: prints what a campaign says of itself, and keeps all.
run() {
	local name=$1 package=$2 tests=$3 begun=$SECONDS verdict=ok
	local kills=$soak
	case $name in kills-sqlite | kills-life | kills-events | kills-erasures | kills-packets | nodes | chaos) kills=$(((soak + 2) / 3)) ;; esac
	printf '%s  %-14s %s\n' "$(date +%T)" "$name" "$4"
	SOAK=$soak DIBS_KILL_ROUNDS=$kills go test -tags soak -count=1 -timeout 6h -v -run "$tests" "$package" >"$logs/$name.log" 2>&1 &
	local job=$!
	while kill -0 "$job" 2>/dev/null; do
		sleep 5
		[ $(((SECONDS - begun) % 60)) -lt 5 ] || continue
		printf '%s  %-14s … %ds: %s\n' "$(date +%T)" "$name" $((SECONDS - begun)) "$(grep -E '^(=== RUN|--- |    [a-z_]+_test\.go)' "$logs/$name.log" | tail -1 | cut -c1-110)"
	done
	wait "$job" || verdict=FAILED
	# A campaign that runs nothing has proved nothing.
	grep -q -- '^--- PASS' "$logs/$name.log" || verdict=FAILED
	grep -E '^ +[a-z_]+_test\.go:[0-9]+: ' "$logs/$name.log" | grep -v 'level=' | sed -E 's/^ +[a-z_]+_test\.go:[0-9]+: /                           /' | tail -12 | cut -c1-200
	printf '%s  %-14s %s after %ds\n' "$(date +%T)" "$name" "$verdict" $((SECONDS - begun))
	[ "$verdict" = ok ] || failed+=("$name")
}

failed=()
ran=0
while IFS= read -r line; do
	[ -n "$line" ] || continue
	# The tests may have bars of their own.
	name=${line%%|*} rest=${line#*|} package=${line#*|}
	package=${package%%|*} rest=${rest#*|}
	tests=${rest%|*} what=${rest##*|}
	wanted "$name" "$@" || continue
	ran=$((ran + 1))
	run "$name" "$package" "$tests" "$what"
done <<<"$campaigns"

[ "$ran" -gt 0 ] || {
	echo "soak: no campaign is called $*" >&2
	exit 2
}
echo "soak: $ran campaigns with SOAK=$soak in ${SECONDS}s, failed: ${#failed[@]} ${failed[*]-}; the logs are in $logs"
[ ${#failed[@]} -eq 0 ]
