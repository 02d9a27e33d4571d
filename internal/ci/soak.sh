#!/usr/bin/env bash
# Runs the long campaigns, one after the other, says how each went, what it counted and
# how long it took, and ends with a table for docs/GUARANTEES.md. A campaign that fails
# does not stop the others; the script ends with 1 when one of them failed.
#
# The simulation runs beside the others, with what they leave of the processors: its time
# is virtual, and most of the others wait for servers for most of theirs.
#
# SOAK (default 100) states the share: at 100 the whole takes about two hours on two
# processors, at 50 about half of that, since some campaigns have one size only.
# Arguments name the campaigns to run (default: all but those that stand apart). SOAK_LOGS is where each campaign's
# whole output goes.
set -uo pipefail

soak=${SOAK:-100}
[[ $soak =~ ^[1-9][0-9]{0,5}$ ]] || {
	echo "soak: SOAK=$soak is no share: it must be a whole number from 1 to 999999" >&2
	exit 2
}
logs=${SOAK_LOGS:-$(mktemp -d -t dibs-soak-XXXXXX)}
mkdir -p "$logs"

# name | package | tests | weight | minutes | what is done
#
# The weight is the part of SOAK, in percent, that the tests get as their number of
# rounds, which many divide further by what a round costs. x before it says that the
# tests have no rounds: they run so often instead. The minutes are what the campaign is
# expected to take at SOAK=100, where it has the processors for itself; the sum of those that
# run one after the other is held near 100 by a test.
campaigns='
kills-sqlite|./cmd/dibs|^TestKill$|33|1|a node on SQLite killed under load, 33 times
kills-mariadb|./cmd/dibs|^TestKillMySQL$|100|1|a node on MariaDB killed under load, 34 times
kills-postgres|./cmd/dibs|^TestKillPostgres$|100|2|a node on PostgreSQL killed under load, 34 times
kills-life|./cmd/dibs|^TestKillLife|33|1|a node killed while claims are paid, cancelled, refunded, 17 and 7 times
kills-events|./cmd/dibs|^TestKillEvents|33|2|a node, and Redis, killed while events go to a stream and a webhook, 7 times on each ledger
kills-erasures|./cmd/dibs|^TestKillErasure|33|2|a node killed while 6 users are erased on each database
kills-packets|./cmd/dibs|^TestRedPacketKilled|33|1|a node killed while red packets are credited and closed, 5 and 2 times
torn-tail|./node|^TestTornJournal$|100|2|the embedded journal cut at any byte, 1,000 times
push|./cmd/dibs|^TestPushKilled$|100|2|a node killed twice while it tells 200,000 followers
crowd|./cmd/dibs|^TestTenThousand$|100|2|10,000 users tap over WebSockets of a node that is killed
settler|./cmd/dibs|^TestSettlerKilled|50|4|of three nodes on Redis the one that settles killed under load, 17 times on each ledger
upgrade|./cmd/dibs|^TestRollingUpgrade$|100|3|two nodes of the version before replaced one after the other under load, on each ledger
nodes|./cmd/dibs|Nodes|SettlerDies|Dump|20|10|three nodes: killed, drained, with Redis killed, with older dumps restored, up to twice
two-masters|./cmd/dibs|^TestTwoMasters$|x1|1|a replica promoted while the old master lives on, each with a node, at every level
hanging|./cmd/dibs|^TestHanging(Database|Journal)$|x1|1|the database of a node frozen, MariaDB and PostgreSQL, and every route asked
more-shards|./cmd/dibs|^TestRehearseMoreShards$|x3|1|a campaign given more shards of a cluster in the middle of a rush, 3 times
transfers|./cmd/dibs|^TestTransfersKilled$|300|10|stock moved between shards of a cluster while nodes are killed, masters frozen and lost, slots moved, 300 times
deployments|./node|^TestACampaign(WhileADeploymentIsAway|ThatLosesADeployment)$|x5|1|a deployment killed, frozen, down at a restart and lost while a campaign over two is sold, 5 times
chaos|./cmd/dibs|^TestChaos$|33|2|Redis, the database and nodes killed, frozen, emptied, at two levels, 2 campaigns each
ledger-standby|./cmd/dibs|^TestStandby|100|3|a PostgreSQL primary killed under load and its standby promoted, asynchronous and synchronous, 3 times each
ledger-galera|./cmd/dibs|^TestGaleraDies$|100|3|the server of a Galera cluster that is written to killed under load, 6 times
ledger-collisions|./ledger/sqlledger|^TestGalera$|50|2|the same batch settled at three servers of a Galera cluster at once, 3,000 times
redis-kills|./engine/redisengine|^TestKilledServerLosesNothing$|100|3|Redis killed, 100 times
redis-power|./engine/redisengine|^TestPowerLoss|100|4|the power cut, always 100 times, everysec 20
redis-disk|./engine/redisengine|^TestStalledDisk$|100|1|a disk that stalls, twice
redis-memory|./engine/redisengine|^(TestMemoryRunsOut|TestEmptyServerIsNeverNew|TestBusyServer)$|100|1|no memory, emptied, busy, up to 5 times
redis-network|./engine/redisengine|^(TestToxics|TestLinearizableWithLostAnswers|TestLostAnswersAreFound|TestScriptsAreFlushedUnderLoad)$|100|3|bad links, lost answers, 100 histories
redis-failover|./engine/redisengine|^(TestStaleReplicaIsPromoted|TestReplicatedSurvivesItsMaster|TestFrozenMasterComesBack)$|100|4|a master lost, with Sentinel, 5 times
redis-cluster|./engine/redisengine|^(TestClusterFailsOver|TestSlotsMigrateUnderLoad|TestContractOnCluster|TestContractThroughSentinel)$|100|5|a cluster: masters lost, slots moved, up to 6 times
crossings|./engine/redisengine|^Test(Crossings|TransfersCrossed)$|x1|3|everything that loses history crossed with everything in flight, in every way
ledger-direct|./ledger/sqlledger|^TestPostgres(Ledger|Journal)$|x1|1|the contract on PostgreSQL without a pooler: the journal, and what of the ledger depends on connections
ledger-items|./ledger/sqlledger|^TestContractOfEncryptedItems$|x1|1|the contract of items that are encrypted, on each database
topologies|./internal/servers|^Test(ClusterMigratesAndFailsOver|Galera|SentinelFailsOver|PostgresPair)$|x1|1|the servers of the tests themselves: clusters, standbys, Galera, Sentinel
histories|./engine/enginetest|^TestEmbedded$/^linear$|x100|3|histories of 8 clients of the embedded engine searched for an order, 10,000
histories-redis|./engine/redisengine|^TestContract$/^linear$|x10|2|the same on Redis, 1,000
histories-shards|./moving|^TestLinearizableOverShards$|200|1|the same over three shards with claims that are cancelled, by 6 clients at two nodes, 200
histories-ledger|./ledger/sqlledger|^Test(SQLite|MySQL|Postgres)Ledger$/^LivesLinear$|x20|2|steps of claims by 6 clients at three connections, 240 histories on each database
random|./engine/enginetest|^TestEmbedded$/^random$|x10|2|5,000 random operations of the embedded engine compared with the model, 10 times
random-redis|./engine/redisengine|^TestContract$/^random$|x10|2|the same on Redis, 10 times
fuzz|internal/ci/fuzz.sh|targets|30|12|each fuzz target for half a minute, one on each processor at a time
plan-redis|./cmd/dibs|^TestPlanMeasuredRedis$|x1|2|a calibration of this machine and of a Redis, a plan with it, and rehearsals on two shards
rehearsal|./lab/rehearsal|^Test(ManyUsers|OneUser)$|100|1|the two usual loads of flash sales at full size
pages|./internal/ci|^Test(PagesAreQuick|StagedBlocks)$|x1|2|the commands of all pages run within two minutes, and what they set up in steps
looks|./internal/screens|^TestScreens$|x1|5|every page looked at in four of its eight looks
stalls|./internal/sqldb|^TestServerStalledTransaction$|100|2|a process frozen in a transaction
simulation|./internal/simulation|^Test(Soak|Planted)$|100|70|whole nodes simulated, 100,000 seeds, and every planted fault found
'

# These measure, on a machine that does nothing else and is not hot from the others: they
# run when they are named.
apart='
plan|./cmd/dibs|^TestPlanWithin$|x1|4|dibs plan against rehearsals of three sizes, on a machine that does nothing else
live-screen|./internal/screens|^TestLiveScreen$|50|2|a live screen of the console watched for 100 seconds under 1,000 grants/s
dev-start|./internal/ci|^TestDevIsSoonThere$|x1|0|dibs dev serves its campaigns within a second of its start
'

# These run beside the others from the start, and are waited for in their turn.
beside='simulation'

wanted() {
	[ $# -gt 1 ] || return 0
	local name=$1 one
	shift
	for one in "$@"; do [ "$one" = "$name" ] && return 0; done
	return 1
}

# begin NAME PACKAGE TESTS ROUNDS COUNT becomes the campaign's process.
begin() {
	case $2 in *.sh) FUZZTIME=$4s exec "$(dirname "$0")/$(basename "$2")" ;; esac
	# Long runs find what short ones do not; the check of a history or a run is bounded by itself.
	case $1 in random*) export ENGINETEST_STEPS=5000 ENGINETEST_RUNS=1 ;; esac
	SOAK=$4 exec go test -tags soak -count="$5" -timeout 6h -v -run "$3" "$2"
}

# figures NAME: what a campaign has counted, one line each.
figures() {
	grep -E '^ +[a-z_]+_test\.go:[0-9]+: ' "$logs/$1.log" | grep -v 'level=' | sed -E 's/^ +[a-z_]+_test\.go:[0-9]+: //'
	# A fuzz target says how often it ran, again and again: its last word counts.
	awk '/^fuzz: .* for /{ last[++n] = 0 } /execs: /{ split($0, part, "execs: "); last[n] = part[2] + 0 }
		END { for (i in last) sum += last[i]; if (n) printf "%d targets, %d executions\n", n, sum }' "$logs/$1.log"
}

# launch NAME PACKAGE TESTS WEIGHT [NICENESS] starts a campaign as a process group.
launch() {
	local name=$1 rounds count=1
	rounds=$((soak * ${4#x} / 100))
	[ "$rounds" -gt 0 ] || rounds=1
	case $4 in x*) count=$rounds ;; esac
	set -m
	(
		[ -z "${5-}" ] || renice -n "$5" -p "$BASHPID" >/dev/null
		begin "$name" "$2" "$3" "$rounds" "$count"
	) </dev/null >"$logs/$name.log" 2>&1 &
	set +m
	jobs[$name]=$! begun[$name]=$SECONDS size[$name]=$rounds
}

# finish NAME WHAT waits for a campaign, and prints what it says of itself, and keeps all.
finish() {
	local name=$1 job=${jobs[$1]} rounds=${size[$1]} said=$SECONDS verdict=ok took
	printf '%s  %-17s SOAK=%d: %s\n' "$(date +%T)" "$name" "$rounds" "$2"
	while kill -0 "$job" 2>/dev/null; do
		sleep 1
		[ $((SECONDS - said)) -ge 60 ] || continue
		said=$SECONDS
		printf '%s  %-17s … %ds: %s\n' "$(date +%T)" "$name" $((SECONDS - begun[$name])) "$(grep -E '^(=== RUN|--- |    [a-z_]+_test\.go|fuzz: )' "$logs/$name.log" | tail -1 | cut -c1-110)"
	done
	wait "$job" || verdict=FAILED
	unset "jobs[$name]"
	# A campaign that runs nothing has proved nothing.
	grep -qE -- '^--- PASS|^fuzz: [1-9][0-9]* targets' "$logs/$name.log" || verdict=FAILED
	took=$((SECONDS - begun[$name]))
	figures "$name" | tail -12 | sed 's/^/                           /' | cut -c1-200
	printf '%s  %-17s %s after %ds\n' "$(date +%T)" "$name" "$verdict" "$took"
	[ "$verdict" = ok ] || failed+=("$name")
	table+=$(printf '| `%s` | %s | %d | %d | %s |' "$name" "$verdict" "$rounds" "$took" "$(figures "$name" | tail -3 | tr '|\n' '/;' | sed 's/;$//; s/;/; /g' | cut -c1-300)")$'\n'
}

# end stops what still runs: a job that was started in the background ignores Ctrl-C.
end() {
	local job
	for job in "${jobs[@]}"; do kill -- "-$job" 2>/dev/null; done
	wait
}
trap end EXIT
trap 'exit 130' INT TERM

declare -A jobs=() begun=() size=()
failed=()
table=
ran=0
# each calls a function with the campaigns that are wanted, one at a time.
each() {
	local with=$1 line name package tests weight what rest
	shift
	while IFS= read -r line; do
		[ -n "$line" ] || continue
		# The tests may have bars of their own, so the line is read from both its ends.
		name=${line%%|*} rest=${line#*|}
		package=${rest%%|*} rest=${rest#*|}
		what=${rest##*|} rest=${rest%|*}
		rest=${rest%|*} # the minutes, which are for the reader
		weight=${rest##*|} tests=${rest%|*}
		! wanted "$name" "$@" || "$with" "$name" "$package" "$tests" "$weight" "$what (at SOAK=100)"
	done <<<"$campaigns$([ $# -eq 0 ] || echo "$apart")"
}

early() {
	! wanted "$1" $beside || launch "${@:1:4}" 10
}

run() {
	ran=$((ran + 1))
	[ -n "${jobs[$1]-}" ] || launch "${@:1:4}"
	finish "$1" "$5"
}

each early "$@"
each run "$@"

[ "$ran" -gt 0 ] || {
	echo "soak: no campaign is called $*" >&2
	exit 2
}
printf '\n| campaign | result | rounds | seconds | figures |\n|---|---|---|---|---|\n%s\n' "$table"
echo "soak: $ran campaigns with SOAK=$soak in ${SECONDS}s, failed: ${#failed[@]} ${failed[*]-}; the logs are in $logs"
[ ${#failed[@]} -eq 0 ]
