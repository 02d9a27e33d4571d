package strategies

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
	// The driver for PostgreSQL.
	_ "github.com/jackc/pgx/v5/stdlib"
)

// SQL is a database of the lab's own, which counts the statements. It is safe for concurrent use.
type SQL struct {
	db       *sql.DB
	postgres bool
	calls    atomic.Int64
}

// OpenSQL opens the database at a URL, mysql:// or postgres://, with so many
// connections.
func OpenSQL(address string, connections int) (*SQL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("strategies: the address of a database is not a URL")
	}
	d := &SQL{postgres: u.Scheme == "postgres" || u.Scheme == "postgresql"}
	if d.postgres {
		d.db, err = sql.Open("pgx", address)
	} else {
		d.db, err = openMySQL(u)
	}
	if err != nil {
		return nil, fmt.Errorf("strategies: %w", err)
	}
	d.db.SetMaxOpenConns(connections)
	d.db.SetMaxIdleConns(connections)
	return d, nil
}

// openMySQL opens a database by the driver's own configuration: it reads no URLs.
func openMySQL(u *url.URL) (*sql.DB, error) {
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	if u.Port() == "" {
		cfg.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	// One round trip for a statement with arguments, as for one without.
	cfg.InterpolateParams = true
	// An update of a row counts it also when no value changed, as in PostgreSQL.
	cfg.ClientFoundRows = true
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// Close closes the connections.
func (d *SQL) Close() error { return d.db.Close() }

// Ping connects to the server.
func (d *SQL) Ping(ctx context.Context) error { return d.db.PingContext(ctx) }

// Exec runs a statement of the lab's own.
func (d *SQL) Exec(ctx context.Context, statement string) error {
	_, err := d.db.ExecContext(ctx, statement)
	return err
}

// ServerStatements is how many statements MariaDB has run, of all its clients;
// PostgreSQL does not count them.
func (d *SQL) ServerStatements(ctx context.Context) (n int64, known bool, err error) {
	if d.postgres {
		return 0, false, nil
	}
	var name string
	err = d.db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n)
	return n, err == nil, err
}

// Calls is how many statements were sent.
func (d *SQL) Calls() int64 { return d.calls.Load() }

// Name is what the server is called.
func (d *SQL) Name() string {
	if d.postgres {
		return "postgres"
	}
	return "mariadb"
}

// offer is the one thing that is sold.
const offer = 1

// prepare makes the tables anew. As in the usual examples, no constraint keeps a
// strategy from what it should not do.
func (d *SQL) prepare(ctx context.Context, stock int64) error {
	id, engine := "BIGINT AUTO_INCREMENT PRIMARY KEY", " ENGINE=InnoDB"
	if d.postgres {
		id, engine = "BIGSERIAL PRIMARY KEY", ""
	}
	for _, statement := range []string{
		"DROP TABLE IF EXISTS lab_offers", "DROP TABLE IF EXISTS lab_orders",
		"CREATE TABLE lab_offers (id INT PRIMARY KEY, stock_left BIGINT NOT NULL, version BIGINT NOT NULL)" + engine,
		"CREATE TABLE lab_orders (id " + id + ", offer_id INT NOT NULL, user_id VARCHAR(64) NOT NULL)" + engine,
		"CREATE INDEX lab_orders_user ON lab_orders (user_id)",
		"INSERT INTO lab_offers VALUES (1, " + strconv.FormatInt(stock, 10) + ", 0)",
	} {
		if _, err := d.db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("strategies: making the tables: %w", err)
		}
	}
	d.calls.Store(0)
	return nil
}

// Orders counts the orders of each user.
func (d *SQL) Orders(ctx context.Context) (orders map[string]int64, err error) {
	rows, err := d.db.QueryContext(ctx, "SELECT user_id, COUNT(*) FROM lab_orders GROUP BY user_id")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	orders = map[string]int64{}
	for rows.Next() {
		var user string
		var n int64
		if err := rows.Scan(&user, &n); err != nil {
			return nil, err
		}
		orders[user] = n
	}
	return orders, rows.Err()
}

// session is where statements are sent: the database, or a transaction.
type session interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// exec returns how many rows a statement changed.
func (d *SQL) exec(ctx context.Context, on session, query string, args ...any) (int64, error) {
	d.calls.Add(1)
	r, err := on.ExecContext(ctx, d.bind(query), args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// row reads one row.
func (d *SQL) row(ctx context.Context, on session, query string, args []any, into ...any) error {
	d.calls.Add(1)
	return on.QueryRowContext(ctx, d.bind(query), args...).Scan(into...)
}

// bind writes PostgreSQL's placeholders.
func (d *SQL) bind(query string) string {
	if !d.postgres {
		return query
	}
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r == '?' {
			n++
			b.WriteString("$" + strconv.Itoa(n))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// stock reads what is left.
func (d *SQL) stock(ctx context.Context, on session) (left int64, err error) {
	err = d.row(ctx, on, "SELECT stock_left FROM lab_offers WHERE id = ?", []any{offer}, &left)
	return left, err
}

// has says whether the user has an order.
func (d *SQL) has(ctx context.Context, on session, user string) (bool, error) {
	var n int64
	err := d.row(ctx, on, "SELECT COUNT(*) FROM lab_orders WHERE user_id = ?", []any{user}, &n)
	return n > 0, err
}

// order writes an order.
func (d *SQL) order(ctx context.Context, on session, user string) error {
	_, err := d.exec(ctx, on, "INSERT INTO lab_orders (offer_id, user_id) VALUES (?, ?)", offer, user)
	return err
}

// orders writes many orders, and takes as many from the stock, at once.
func (d *SQL) orders(ctx context.Context, users []string) error {
	if len(users) == 0 {
		return nil
	}
	return d.transact(ctx, func(tx *sql.Tx) (bool, error) {
		args := make([]any, 0, 2*len(users))
		for _, u := range users {
			args = append(args, offer, u)
		}
		values := strings.TrimSuffix(strings.Repeat("(?, ?),", len(users)), ",")
		if _, err := d.exec(ctx, tx, "INSERT INTO lab_orders (offer_id, user_id) VALUES "+values, args...); err != nil {
			return false, err
		}
		_, err := d.exec(ctx, tx, "UPDATE lab_offers SET stock_left = stock_left - ? WHERE id = ?", len(users), offer)
		return err == nil, err
	})
}

// transact runs a transaction, and commits it when do says so. BEGIN and the end count as statements.
func (d *SQL) transact(ctx context.Context, do func(tx *sql.Tx) (commit bool, err error)) error {
	d.calls.Add(2)
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	commit, err := do(tx)
	if !commit || err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
