package sqldb

import (
	"context"
	"database/sql"
)

// Durable asks a server for each setting without which it may lose what it has
// committed: a Finding at LevelFail for one that is not as it must be. Open refuses
// such a server, but settings change while a server runs, and after a failover
// another one answers. A file has no such settings. An error says nothing about
// them: the server did not answer.
func (db *DB) Durable(ctx context.Context) (found []Finding, err error) {
	if db.server == nil {
		return nil, nil
	}
	err = db.Read(ctx, "ask whether commits are kept", func(s *Session) (err error) {
		found, err = db.server.durable(s.within(ctx), s.conn)
		return s.doubted(err)
	})
	return found, err
}

// keeps is the finding about a setting that must have a value for commits to be kept.
// remedy is "set NAME = VALUE" when it is empty.
func keeps(name, value, wanted, remedy string) Finding {
	f := Finding{Level: LevelOK, Subject: name, Found: value}
	if value == wanted {
		return f
	}
	if remedy == "" {
		remedy = "set " + name + " = " + wanted
	}
	f.Level, f.Wanted, f.Remedy = LevelFail, wanted, remedy
	return f
}

// remedies are those of the settings that are not as they must be.
func remedies(found []Finding) (all []string) {
	for _, f := range found {
		if f.Level != LevelOK {
			all = append(all, f.Remedy)
		}
	}
	return all
}

// mysqlDurable asks for the settings of Durable.
func mysqlDurable(ctx context.Context, conn *sql.Conn) ([]Finding, error) {
	v, err := readMySQLVariables(ctx, conn)
	return v.durable(), err
}

// postgresDurable asks for the settings of Durable. synchronous_commit is each
// connection's own: see postgresSettings.
func postgresDurable(ctx context.Context, conn *sql.Conn) ([]Finding, error) {
	v, err := readPostgresVariables(ctx, conn)
	return v.durable(), err
}
