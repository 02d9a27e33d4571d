package lock

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// member is one server of a Majority. One that cannot be reached is tried again
// behind whoever asks for it.
//
// mu guards what stands below it. opening is set while one call tries to connect, so
// that there is one at a time. After closed no try begins; one that was under way may
// still set r, which the second close of Majority.Close closes.
type member struct {
	cfg   RedisConfig
	calls *calls

	mu      sync.Mutex
	r       *Redis
	err     error
	opening bool
	next    time.Time
	closed  bool
}

// between is the least time between two tries to reach a server.
const between = time.Second

// get returns the server, or why there is none.
func (m *member) get() (*Redis, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.r != nil {
		return m.r, nil
	}
	if !m.opening && !m.closed && time.Now().After(m.next) {
		m.opening = m.calls.start(m.open)
	}
	return nil, m.err
}

func (m *member) open() {
	r, err := OpenRedis(m.cfg)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opening, m.next = false, time.Now().Add(between)
	if err != nil {
		m.err = err
		return
	}
	m.r = r
}

func (m *member) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.err = true, errClosed
	if m.r == nil {
		return nil
	}
	r := m.r
	m.r = nil
	return r.Close()
}

// openMembers tries all, and is content with most. It waits for the others for
// a moment.
func openMembers(cfg RedisConfig, c *calls, urls []string) ([]*member, error) {
	all := make([]*member, len(urls))
	opened := make(chan error, len(urls))
	for i, u := range urls {
		cfg.URL = u
		m := &member{cfg: cfg, calls: c, err: errors.New("lock: the server has not answered yet"), opening: true}
		all[i] = m
		c.start(func() {
			m.open()
			_, err := m.get()
			opened <- err
		})
	}
	most, yes := len(urls)/2+1, 0
	var errs []error
	moment := time.NewTimer(between)
	defer moment.Stop()
	for yes+len(errs) < len(urls) {
		var enough <-chan time.Time
		if yes >= most {
			enough = moment.C
		}
		select {
		case err := <-opened:
			if err != nil {
				errs = append(errs, err)
			} else {
				yes++
			}
		case <-enough:
			return all, nil
		}
		if len(errs) > len(urls)-most {
			return all, fmt.Errorf("lock: opening a majority: %w", errors.Join(errs...))
		}
	}
	return all, nil
}
