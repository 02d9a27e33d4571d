package sqlledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
)

// parseMySQL reads mysql://USER:PASSWORD@HOST:PORT/DATABASE?tls=….
func parseMySQL(u *url.URL) (*mysql.Config, error) {
	if err := oneHost(u); err != nil {
		return nil, err
	}
	c := mysql.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.DBName = strings.TrimPrefix(u.Path, "/")
	port := u.Port()
	if port == "" {
		port = "3306"
	}
	c.Net, c.Addr = "tcp", net.JoinHostPort(u.Hostname(), port)
	// As with PostgreSQL: encrypted where the server can, checked where told to.
	c.TLSConfig = "preferred"
	for key, values := range u.Query() {
		if key != "tls" {
			return nil, fmt.Errorf("there is no option %q, only tls", key)
		}
		if !slices.Contains([]string{"true", "false", "skip-verify", "preferred"}, values[0]) {
			return nil, errors.New("tls must be true, false, skip-verify or preferred")
		}
		c.TLSConfig = values[0]
	}
	if u.Hostname() == "" || c.DBName == "" || strings.Contains(c.DBName, "/") || c.User == "" {
		return nil, errors.New("it must be like mysql://USER:PASSWORD@HOST:3306/DATABASE")
	}
	c.DialFunc, c.Timeout = dial, connectPatience
	// The packets are as large as the server takes.
	c.MaxAllowedPacket = 0
	// An update counts the rows that it found, whether or not they changed.
	c.ClientFoundRows = true
	c.ParseTime = true
	c.Logger = &mysql.NopLogger{}
	// The driver notes in the configuration that a server offers no TLS: each
	// connection gets its own, so that one does not decide for the others.
	err := c.Apply(mysql.BeforeConnect(func(context.Context, *mysql.Config) error { return nil }))
	return c, err
}

// mysqlDialect speaks to MySQL and MariaDB.
func mysqlDialect(kind string, c *mysql.Config) *dialect {
	r := &server{
		screen: mysqlScreen, check: mysqlCheck, unixTime: "SELECT UNIX_TIMESTAMP(NOW(6))", advise: mysqlAdvise(c), secret: c.Passwd, locks: mysqlLocks,
	}
	r.settings = func(use usage) []string {
		if r.galera.Load() {
			return append(mysqlSettings(use), galeraSettings(use))
		}
		return mysqlSettings(use)
	}
	return &dialect{
		goose: goose.DialectMySQL, folder: "migrations/" + folderOf(kind, "mysql"), applied: "dibs_" + kind + "_versions",
		begin: "START TRANSACTION", beginRead: "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
		addBalance: " ON DUPLICATE KEY UPDATE balance = balance + VALUES(balance)",
		byClaim:    " FORCE INDEX (items_by_claim)",
		forUpdate:  " FOR UPDATE", forShare: " LOCK IN SHARE MODE",
		skipLocked: " FOR UPDATE SKIP LOCKED", dueAt: "due_at <= ?", byDue: "due_at",
		claims:   manyRows{most: 512, text: mysqlInsertClaims, arguments: mysqlClaimArguments},
		items:    manyRows{most: 512, text: mysqlAssignItems, arguments: headThenRows},
		itemRows: 512, plainTuples: true, among: anyOf,
		classify: mysqlClassify,
		open: func(string, usage) (*sql.DB, error) {
			connector, err := mysql.NewConnector(c)
			if err != nil {
				return nil, fmt.Errorf("sqlledger: %w", err)
			}
			return sql.OpenDB(connector), nil
		},
		server: r,
	}
}

// mysqlSettings do not leave to the server's configuration what dibs relies on.
func mysqlSettings(use usage) []string {
	// MariaDB alone runs what is in such a comment; MySQL has no such limit, and
	// ends the connection after its idle time.
	level, access, stalled := "READ COMMITTED", "READ WRITE", "/*M!100300 idle_transaction_timeout = "+strconv.Itoa(int(stallPatience.Seconds()))+", */ "
	if use == forReading {
		// Reads of one transaction see one state.
		level, access, stalled = "REPEATABLE READ", "READ ONLY", ""
	}
	return []string{
		"SET SESSION TRANSACTION ISOLATION LEVEL " + level + ", " + access,
		// What does not fit is refused, not cut. The locks of a machine that is
		// gone, or of a process that is frozen, do not outlive it for long.
		"SET SESSION " + stalled + "sql_mode = 'TRADITIONAL,ONLY_FULL_GROUP_BY', innodb_lock_wait_timeout = " +
			strconv.Itoa(int(lockPatience.Seconds())) + ", wait_timeout = " + strconv.Itoa(int(idlePatience.Seconds())) + ", time_zone = '+00:00'",
	}
}

// mysqlCheck refuses servers that do not enforce constraints, or that answer
// before a commit is on the disk.
func mysqlCheck(ctx context.Context, conn *sql.Conn) error {
	var v mysqlVariables
	if err := conn.QueryRowContext(ctx, "SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog, @@global.max_allowed_packet").
		Scan(&v.version, &v.flush, &v.binlog, &v.syncBinlog, &v.packet); err != nil {
		return err
	}
	return v.check()
}

// mysqlVariables are what a server says about itself.
type mysqlVariables struct {
	version                           string
	flush, binlog, syncBinlog, packet int64
}

func (v *mysqlVariables) check() error {
	least, name := [3]int{8, 0, 16}, "MySQL 8.0.16"
	if strings.Contains(v.version, "MariaDB") {
		least, name = [3]int{10, 6, 0}, "MariaDB 10.6"
	}
	if olderThan(v.version, least) {
		return fmt.Errorf("%w: its version is %s, and %s is the oldest that will do", errUnfit, v.version, name)
	}
	switch {
	case v.flush != 1:
		return fmt.Errorf("%w: it answers before a commit is on the disk: set innodb_flush_log_at_trx_commit = 1", errUnfit)
	case v.binlog != 0 && v.syncBinlog != 1:
		// After a power cut the server takes back what its binary log lacks.
		return fmt.Errorf("%w: it answers before a commit is on the disk: set sync_binlog = 1", errUnfit)
	case v.packet < leastPacket:
		return fmt.Errorf("%w: a group commit may be larger than it takes: set max_allowed_packet = %dM or more", errUnfit, leastPacket>>20)
	}
	return nil
}

// leastPacket is what a server has to take in one piece: a group commit of
// 65,536 claims, and some room. Both servers take as much by default.
const leastPacket = 16 << 20

// olderThan compares a version's first numbers.
func olderThan(version string, least [3]int) bool {
	// MariaDB may put this before its version, for old clients.
	parts := strings.SplitN(strings.TrimPrefix(version, "5.5.5-"), ".", 3)
	for i, want := range least {
		if i == len(parts) {
			return true
		}
		digits := parts[i]
		if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
			digits = digits[:end]
		}
		n, err := strconv.Atoi(digits)
		if err != nil || n != want {
			return err != nil || n < want
		}
	}
	return false
}

// mysqlInsertClaims repeats the columns that all claims of a run share.
func mysqlInsertClaims(n int) string {
	return `INSERT INTO claims (campaign, shard, epoch, status, order_type, currency, restocked,
		seq, user_id, quantity, amount, request_key, pay_by, created_at) VALUES ` +
		repeat("(?,?,?,?,?,?,0,?,?,?,?,?,?,?)", n)
}

func mysqlClaimArguments(dst, head, rows []any, width int) []any {
	for ; len(rows) > 0; rows = rows[width:] {
		dst = append(append(dst, head...), rows[:width]...)
	}
	return dst
}

// mysqlAssignItems finds each item by its key: the list comes first, however
// few items the server takes the campaign to have.
func mysqlAssignItems(n int) string {
	return `UPDATE (SELECT ? AS campaign, ? AS shard, ? AS epoch) AS run
		STRAIGHT_JOIN (SELECT ? AS n, ? AS seq` + strings.Repeat(" UNION ALL SELECT ?, ?", n-1) + `) AS given
		STRAIGHT_JOIN items ON items.campaign = run.campaign AND items.n = given.n
		SET items.claim_epoch = run.epoch, items.claim_seq = given.seq
		WHERE items.shard = run.shard AND items.claim_epoch IS NULL AND items.withdrawn = 0`
}

// mysqlFaults are the numbers of the server's errors. 1305 is a savepoint that is
// gone, with its transaction.
var mysqlFaults = map[uint16]fault{
	1062: faultUnique, 1586: faultUnique,
	1048: faultConstraint, 1216: faultConstraint, 1217: faultConstraint, 1264: faultConstraint, 1265: faultConstraint,
	1406: faultConstraint, 1451: faultConstraint, 1452: faultConstraint, 1690: faultConstraint, 3819: faultConstraint, 4025: faultConstraint,
	1366: faultText, 1300: faultText, 3854: faultText,
	1205: faultConflict, 1213: faultConflict, 1020: faultConflict, 1305: faultConflict,
	1021: faultFull, 1114: faultFull,
	1034: faultCorrupt, 1035: faultCorrupt, 1194: faultCorrupt, 1712: faultCorrupt,
	// The server is full, ending, a replica, cut off from its cluster, or was told to
	// end the connection.
	1030: faultIO, 1040: faultIO, 1047: faultIO, 1053: faultIO, 1152: faultIO, 1158: faultIO, 1159: faultIO, 1160: faultIO, 1161: faultIO,
	1203: faultIO, 1226: faultIO, 1290: faultIO, 1317: faultIO, 1792: faultIO, 1836: faultIO, 1927: faultIO, 3024: faultIO, 3169: faultIO,
}

func mysqlClassify(err error) fault {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return mysqlFaults[e.Number]
	}
	if lost(err) || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, mysql.ErrMalformPkt) || errors.Is(err, mysql.ErrPktSync) {
		return faultIO
	}
	return faultOther
}

// largerPacket is the advice when the server refuses the size of something.
const largerPacket = "more than the server takes in one piece: set max_allowed_packet = 64M or more, or add fewer items at once"

// mysqlAdvise says what to do about errors that people can mend.
func mysqlAdvise(c *mysql.Config) func(error) string {
	return func(err error) string {
		var e *mysql.MySQLError
		if !errors.As(err, &e) {
			switch {
			case errors.Is(err, mysql.ErrInvalidConn):
				err = driver.ErrBadConn
			case errors.Is(err, mysql.ErrNoTLS):
				return noTLS + "tls"
			}
			if errors.Is(err, mysql.ErrPktTooLarge) {
				return largerPacket
			}
			return silent(err, c.Addr, "MySQL")
		}
		if strings.Contains(e.Message, "max_allowed_packet") {
			return largerPacket
		}
		switch e.Number {
		case 1045, 1698:
			return "the server does not let " + c.User + " in: correct user or password"
		case 1049:
			return "there is no database " + c.DBName + ": CREATE DATABASE " + c.DBName + ", or correct its name"
		case 1044, 1142, 1143, 1227:
			return "the user " + c.User + " has too few rights: GRANT ALL ON " + c.DBName + ".* TO " + c.User + ", or correct the database's name"
		case 1290, 1836:
			return readOnly
		case 1047:
			return "the server is not part of its cluster's majority: wait until it is, or use the address of one that is"
		}
		return ""
	}
}
