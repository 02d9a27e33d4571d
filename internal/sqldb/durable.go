package sqldb

import (
	"context"
	"errors"
)

// Durable asks a server for each setting without which it may lose what it has
// committed: a Finding at LevelFail for one that is not as it must be. Open refuses
// such a server, but settings change while a server runs, and after a failover
// another one answers. It is asked on a connection of its own: one that waits behind
// what has all others in use says nothing for as long. A file has no such settings. An
// error says nothing about them: the server did not answer.
func (db *DB) Durable(ctx context.Context) (found []Finding, err error) {
	if db.server == nil {
		return nil, nil
	}
	s, err := db.watch.take(ctx)
	if err == nil {
		found, err = db.server.durable(s.within(ctx), s.conn)
		err = errors.Join(s.call.late(s.doubted(err)), db.watch.give(s))
	}
	return found, db.explain("ask whether commits are kept", err)
}
