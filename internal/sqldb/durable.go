package sqldb

import "context"

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
