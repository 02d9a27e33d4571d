package ci_test

// stage runs blocks that pages mark bash, since they start servers of their own or name the reader's, one after the
// other in a fresh shell. What they name is replaced by servers of the test, and large numbers by small ones.
type stage struct {
	// blocks are the first lines of the blocks; before and after are commands around them.
	blocks        []string
	before, after string
	// replace has pairs: what a block says, and what is run. @REDIS@, @DATABASE@ and @NATS@ stand for the test's servers,
	// as host:port, @PORT@ and @LISTEN@ for a free port and the address of dibs.
	replace []string
	// says is what the commands print, in any order.
	says []string
}

// stageShell stands before the commands of a stage. dibs serve and dibs dev begin in the background here, and are
// awaited; systemctl stops and starts what began last.
const stageShell = `
trap 'trap - ERR; { kill $(jobs -p); wait; redis-cli -p @PORT@ shutdown nosave; } >/dev/null 2>&1' EXIT
trap 'echo "FAILED: $BASH_COMMAND"' ERR
export DIBS_URL=http://@LISTEN@ DIBS_LISTEN=@LISTEN@ DIBS_ADMIN_KEY=an-admin-key-for-this-test DIBS_JWT_SECRET=a-secret-of-32-bytes-for-this-test
dibs() {
	case $1 in
	serve | dev)
		begun=("$@")
		command dibs "$@" >>dibs.log 2>&1 &
		server=$!
		until curl -sf -o out.json "$DIBS_URL/readyz"; do kill -0 $server || { cat dibs.log; return 1; }; sleep 0.1; done
		;;
	*) command dibs "$@" ;;
	esac
}
systemctl() {
	case $1 in
	stop) kill $server && wait $server ;;
	start) dibs "${begun[@]}" ;;
	esac
}
mariadb() { command mariadb --protocol=tcp --host="${DATABASE%:*}" --port="${DATABASE#*:}" --user=dibs --password="$PASSWORD" "$@"; }
mariadb-dump() { command mariadb-dump --protocol=tcp --host="${DATABASE%:*}" --port="${DATABASE#*:}" --user=dibs --password="$PASSWORD" "$@"; }
`

// small is the lab with few users, on the test's database.
const small = `dibs lab --users 40 --requests 60 --stock 10 --concurrency 20 --mariadb mysql://dibs:$PASSWORD@$DATABASE/lab`

var stages = map[string]stage{
	"red packets, small": {
		before: "dibs dev",
		blocks: []string{
			"dibs account deposit host --amount 100,000CNY --ref transfer-2",
			"dibs rehearse --kind redpacket --stock 100000 --users 100000 --requests 120000 --concurrency 1000",
		},
		replace: []string{"100000", "1000", "120000", "1200", "90000", "900", "--concurrency 1000", "--concurrency 50"},
		says:    []string{"every promise held", "every promise holds, campaigns verified: 1", "in escrow 0.00"},
	},
	"servers, a backup, and what follows": {
		blocks: []string{
			`redis-server --dir "$(mktemp -d)" --appendonly yes --appendfsync always --maxmemory-policy noeviction &`,
			"mariadb-dump --single-transaction dibs > dibs.sql",
			"systemctl stop dibs",
			"dibs verify --url http://127.0.0.1:8081 --repair --older-ledger continue phone-noon",
			"redis-cli HDEL dibs:shards 2:0",
		},
		replace: []string{
			"redis-server --dir", "redis-server --port @PORT@ --dir", "127.0.0.1:6379", "127.0.0.1:@PORT@", "redis-cli", "redis-cli -p @PORT@",
			"127.0.0.1:3306", "@DATABASE@", "dibs@127.0.0.1", "shop@127.0.0.1", "dibs:secret", "shop:secret", "DIBS_ADMIN_KEY=dibs-dev-admin-key bin/dibs", "dibs", "http://127.0.0.1:8081", "http://@LISTEN@",
		},
		says: []string{"every promise holds, campaigns verified: 5", "there was nothing to repair"},
	},
	"doctor and serve": {
		before: "mariadb -e 'CREATE DATABASE here'; export DIBS_ADMIN_LISTEN=127.0.0.1:@PORT@",
		blocks: []string{"export DIBS_ENGINE=redis://:PASSWORD@redis.internal:6379/0"},
		replace: []string{
			":PASSWORD@redis.internal:6379", "@REDIS@", "dibs:PASSWORD@db.internal:3306/dibs", "dibs:$PASSWORD@@DATABASE@/here", "0.0.0.0:8080", "@LISTEN@",
		},
		after: "DIBS_URL=http://127.0.0.1:@PORT@ dibs campaign list",
		says:  []string{"0 FAIL", "TITLE"},
	},
	"events to brokers": {
		blocks: []string{
			"dibs serve --events redis://127.0.0.1:6379 --events 'nats://127.0.0.1:4222/dibs?stream=DIBS'",
			"dibs events dead list --from redis://127.0.0.1:6379 --group points",
		},
		replace: []string{"127.0.0.1:6379", "@REDIS@", "127.0.0.1:4222", "@NATS@"},
		after:   "dibs events sinks",
		says:    []string{"dev.dibs.claim.confirmed", "ENTRY", "replayed  0", "redis", "nats"},
	},
	"copies of a data folder": {
		before: `dibs serve --data dibs-data; dibs campaign create --id mugs --title Mugs --units 5 --ends +1h --publish`,
		blocks: []string{"mkdir dibs-backup", "cp -a dibs-data dibs-backup"},
		replace: []string{
			"cp -a dibs-data dibs-backup", "dibs verify --data dibs-backup; rm -r dibs-backup; systemctl stop; cp -a dibs-data dibs-backup",
		},
		after: "dibs verify --data dibs-backup; [ $(sqlite3 dibs-backup/ledger.db 'SELECT id FROM campaigns') = mugs ]",
		says:  []string{"every promise holds, campaigns verified: 1"},
	},
	"a second person": {
		before: `waiting() { dibs approval list --output json | grep -o 'ap-[A-Z0-9]*' | head -1; }
other=$(dibs key create --name other --output json | grep -o 'dibs_[A-Za-z0-9_-]*')`,
		blocks: []string{"dibs serve --approve deposits --approve red-packets --approve 'refunds=100.00CNY' --approve erasure --approve public-value --approve abandon-shard …"},
		replace: []string{
			" …", "", "--ref transfer-1 ", "--ref transfer-1 || [ $? = 1 ] ", "dibs approval approve ap-5M9ZQ2WX7RBE", `DIBS_ADMIN_KEY=$other dibs approval approve "$(waiting)"`,
			"dibs approval reject ap-7Q2M4KJ3TXPD", `dibs account deposit host --amount 5CNY --ref transfer-2 || [ $? = 1 ]; dibs approval reject "$(waiting)"`,
		},
		after: "dibs account show host",
		says:  []string{"state     done", "state     rejected", "balance  100,000.00 CNY"},
	},
	"the lab, small": {
		before: "mariadb -e 'CREATE DATABASE lab'",
		blocks: []string{"dibs lab --strategies naive,by-stock,dibs-embedded --databases mariadb"},
		replace: []string{
			"dibs lab --strategies naive", small + " --strategies naive", "dibs lab                ", small + " --strategies by-stock --databases mariadb",
			"dibs lab --preset one-user", small + " --preset one-user --users 1 --strategies by-stock --databases mariadb",
			"dibs lab --preset packets", small + " --preset packets --strategies dibs-embedded",
		},
		says: []string{"naive", "by-stock", "dibs-embedded", "packet-script"},
	},
	"tokens of many users": {
		blocks:  []string{"DIBS_JWT_SECRET=… dibs token --count 2000 --prefix u --format csv > tokens.csv"},
		replace: []string{"DIBS_JWT_SECRET=… ", "", "./jmeter.sh", "echo"},
		after:   "[ $(grep -c '^u[0-9]*,ey' tokens.csv) = 2000 ]",
		says:    []string{"-Jone_token=ey"},
	},
	"a collector of traces that is away": {
		blocks:  []string{"dibs serve --otlp-endpoint http://collector:4318 --trace-one-in 10"},
		replace: []string{"collector:4318", "127.0.0.1:@PORT@"},
		after:   "curl -sS $DIBS_URL/healthz",
		says:    []string{`"status":"ok"`},
	},
	"a crowd at a rate": {
		before: "dibs dev",
		blocks: []string{
			"dibs rehearse --url http://PROXY --admin-url http://NODE:8081 --rate 800 --duration 20s --users 12000 --stock 9000",
			"go run ./cmd/dibs rehearse --rate 2000 --duration 6s --users 20000 --stock 8000",
		},
		replace: []string{
			"http://PROXY", "http://@LISTEN@", "http://NODE:8081", "http://@LISTEN@", "--rate 800 --duration 20s --users 12000 --stock 9000", "--rate 100 --duration 1s --users 90 --stock 60",
			"go run ./cmd/dibs", "dibs", "--rate 2000 --duration 6s --users 20000 --stock 8000", "--rate 100 --duration 1s --users 90 --stock 60",
		},
		says: []string{"every promise held"},
	},
}
