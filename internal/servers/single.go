package servers

import (
	"errors"
	"sync"
)

// single is the one server of a kind that a process has.
// mu is held while the server starts, so that all who ask at once wait for one start.
type single struct {
	kind *kind
	mu   sync.Mutex
	// server is nil before the first use, and after StopAll.
	server *Server
	// err is why the server cannot be had; it is not tried twice.
	err error
}

// get starts the server unless it runs.
func (o *single) get() (*Server, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.server == nil && o.err == nil {
		o.server, o.err = start(o.kind)
	}
	return o.server, o.err
}

// StopAll ends every server that was started and removes their files.
func StopAll() error {
	var errs []error
	for _, o := range []*single{&theMariaDB, &thePostgres} {
		o.mu.Lock()
		if o.server != nil {
			errs = append(errs, o.server.stop())
			o.server = nil
		}
		o.mu.Unlock()
	}
	return errors.Join(errs...)
}
