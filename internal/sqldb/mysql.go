package sqldb

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
	// As with PostgreSQL: encrypted when the server offers it, verified when
	// the address asks for it.
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
	// 0 makes packets as large as the server takes.
	c.MaxAllowedPacket = 0
	// An UPDATE counts the rows that it found, changed or not.
	c.ClientFoundRows = true
	c.ParseTime = true
	c.Logger = &mysql.NopLogger{}
	return c, nil
}

// oneHost refuses the address of several servers.
func oneHost(u *url.URL) error {
	if strings.Contains(u.Host, ",") {
		return fmt.Errorf("%s are several servers: name one address, and let a proxy or a moving address lead to the server that is written to", u.Host)
	}
	return nil
}

// mysqlDialect speaks to MySQL and MariaDB at an address.
func mysqlDialect(u *url.URL) (*Dialect, error) {
	c, err := parseMySQL(u)
	if err != nil {
		return nil, err
	}
	r := &server{
		screen: mysqlScreen, check: mysqlCheck, durable: mysqlDurable, unixTime: "SELECT UNIX_TIMESTAMP(NOW(6))", advise: mysqlAdvise(c), secret: c.Passwd, locks: mysqlLocks,
	}
	// The driver notes in the configuration that a server offers no TLS: with this, each
	// connection gets its own, so that one does not decide for the others.
	if err := c.Apply(mysql.BeforeConnect(func(_ context.Context, c *mysql.Config) error {
		if now := r.login(); now != nil {
			c.User = now.Username()
			c.Passwd, _ = now.Password()
		}
		return nil
	})); err != nil {
		return nil, err
	}
	r.settings = func(use usage) []string {
		if r.galera.Load() {
			return append(mysqlSettings(use), galeraSettings(use))
		}
		return mysqlSettings(use)
	}
	return &Dialect{
		Kind: MySQL, ForUpdate: " FOR UPDATE", ForShare: " LOCK IN SHARE MODE", SkipLocked: " FOR UPDATE SKIP LOCKED",
		goose: goose.DialectMySQL,
		begin: "START TRANSACTION", beginRead: "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
		plainTuples: true,
		classify:    mysqlClassify,
		open: func(usage) (*sql.DB, error) {
			connector, err := mysql.NewConnector(c)
			if err != nil {
				return nil, err
			}
			return sql.OpenDB(connector), nil
		},
		server: r,
	}, nil
}

// mysqlSettings sets what dibs relies on, whatever the server's configuration
// says.
func mysqlSettings(use usage) []string {
	// Only MariaDB runs the words in such a comment. MySQL has no such limit;
	// there the idle time ends the connection.
	level, access, stalled := "READ COMMITTED", "READ WRITE", "/*M!100300 idle_transaction_timeout = "+strconv.Itoa(int(stallPatience.Seconds()))+", */ "
	if use == forReading {
		// Reads of one transaction see one state.
		level, access, stalled = "REPEATABLE READ", "READ ONLY", ""
	}
	return []string{
		"SET SESSION TRANSACTION ISOLATION LEVEL " + level + ", " + access,
		// TRADITIONAL refuses values that do not fit instead of cutting them.
		// The timeouts release the locks of a vanished machine, or of a frozen
		// process, soon.
		"SET SESSION " + stalled + "sql_mode = 'TRADITIONAL,ONLY_FULL_GROUP_BY', innodb_lock_wait_timeout = " +
			strconv.Itoa(int(lockPatience.Seconds())) + ", wait_timeout = " + strconv.Itoa(int(idlePatience.Seconds())) + ", time_zone = '+00:00'",
	}
}

// mysqlCheck refuses servers that do not enforce constraints, or that answer
// before a commit is on the disk.
func mysqlCheck(ctx context.Context, conn *sql.Conn) error {
	v, err := readMySQLVariables(ctx, conn)
	if err != nil {
		return err
	}
	return v.check()
}

// mysqlVariables are the settings that mysqlCheck looks at. packet is in bytes.
type mysqlVariables struct {
	version                           string
	flush, binlog, syncBinlog, packet int64
}

func readMySQLVariables(ctx context.Context, conn *sql.Conn) (v mysqlVariables, err error) {
	err = conn.QueryRowContext(ctx, "SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog, @@global.max_allowed_packet").
		Scan(&v.version, &v.flush, &v.binlog, &v.syncBinlog, &v.packet)
	return v, err
}

// check returns an errUnfit with the setting to change.
func (v *mysqlVariables) check() error {
	least, name := [3]int{8, 0, 16}, "MySQL 8.0.16"
	if strings.Contains(v.version, "MariaDB") {
		least, name = [3]int{10, 6, 0}, "MariaDB 10.6"
	}
	if olderThan(v.version, least) {
		return fmt.Errorf("%w: its version is %s, and %s is the oldest that will do", errUnfit, v.version, name)
	}
	if lost := remedies(v.durable()); len(lost) > 0 {
		return fmt.Errorf("%w: it answers before a commit is on the disk: %s", errUnfit, strings.Join(lost, ", "))
	}
	if v.packet < leastPacket {
		return fmt.Errorf("%w: a group commit may be larger than it takes: set max_allowed_packet = %dM or more", errUnfit, leastPacket>>20)
	}
	return nil
}

// mysqlDurable asks for the settings of Durable.
func mysqlDurable(ctx context.Context, conn *sql.Conn) ([]Finding, error) {
	v, err := readMySQLVariables(ctx, conn)
	return v.durable(), err
}

// durable are the findings of Durable.
func (v *mysqlVariables) durable() []Finding {
	found := []Finding{keeps("innodb_flush_log_at_trx_commit", strconv.FormatInt(v.flush, 10), "1", "")}
	if v.binlog != 0 {
		// After a power cut the server undoes transactions that its binary log lacks.
		found = append(found, keeps("sync_binlog", strconv.FormatInt(v.syncBinlog, 10), "1", ""))
	}
	return found
}

// leastPacket is how many bytes a server has to take in one packet: a group
// commit of 65,536 claims, and some room. Both servers take as much by default.
const leastPacket = 16 << 20

// olderThan reports whether a version's first three numbers are below least. A
// version that cannot be read is.
func olderThan(version string, least [3]int) bool {
	// MariaDB may put 5.5.5- before its version, for old clients.
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

// mysqlFaults are the classes of the server's errors by their numbers. 1305
// says that a savepoint is gone, and its transaction with it.
var mysqlFaults = map[uint16]Fault{
	1062: FaultUnique, 1586: FaultUnique,
	1048: FaultConstraint, 1216: FaultConstraint, 1217: FaultConstraint, 1264: FaultConstraint, 1265: FaultConstraint,
	1406: FaultConstraint, 1451: FaultConstraint, 1452: FaultConstraint, 1690: FaultConstraint, 3819: FaultConstraint, 4025: FaultConstraint,
	1366: FaultText, 1300: FaultText, 3854: FaultText,
	1205: FaultConflict, 1213: FaultConflict, 1020: FaultConflict, 1305: FaultConflict,
	1021: FaultFull, 1114: FaultFull,
	1034: FaultCorrupt, 1035: FaultCorrupt, 1194: FaultCorrupt, 1712: FaultCorrupt,
	// The server has no connection left, is ending, is a replica, is cut off
	// from its cluster, or was told to end the connection.
	1030: FaultIO, 1040: FaultIO, 1047: FaultIO, 1053: FaultIO, 1152: FaultIO, 1158: FaultIO, 1159: FaultIO, 1160: FaultIO, 1161: FaultIO,
	1203: FaultIO, 1226: FaultIO, 1290: FaultIO, 1317: FaultIO, 1792: FaultIO, 1836: FaultIO, 1927: FaultIO, 3024: FaultIO, 3169: FaultIO,
}

// mysqlClassify reads the number of the server's error, or what the driver says
// of the connection.
func mysqlClassify(err error) Fault {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return mysqlFaults[e.Number]
	}
	if lost(err) || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, mysql.ErrMalformPkt) || errors.Is(err, mysql.ErrPktSync) {
		return FaultIO
	}
	return FaultOther
}

// largerPacket is the advice when the server refuses a packet for its size.
const largerPacket = "more than the server takes in one piece: set max_allowed_packet = 64M or more, or add fewer items at once"

// mysqlAdvise says what to do about errors that people can repair.
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
			return unreachable(err, c.Addr, "MySQL")
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
