package rehearsal

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
)

// sockets is a server whose claims go over a WebSocket of each user; all else
// goes over HTTP.
// mu guards conns.
type sockets struct {
	*wire
	// timeout is the longest that a claim may take.
	timeout time.Duration
	mu      sync.Mutex
	conns   map[string]*client.Conn
}

var _ server = (*sockets)(nil)

// open connects all users before the load begins.
func (s *sockets) open(ctx context.Context, p *plan, users int, progress progress) error {
	opened := newTally(0)
	defer progress.watch("connecting", users, opened.done.Load, none)()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dialsAtOnce)
	for i := range users {
		group.Go(func() error {
			if _, err := s.conn(ctx, p.userID(int32(i))); err != nil {
				return fmt.Errorf("opening %d WebSockets: %w", users, err)
			}
			opened.done.Add(1)
			return nil
		})
	}
	return group.Wait()
}

// conn is a user's connection, which is made when there is none.
func (s *sockets) conn(ctx context.Context, user string) (*client.Conn, error) {
	s.mu.Lock()
	c := s.conns[user]
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	as, err := s.as(user)
	if err != nil {
		return nil, err
	}
	if c, err = as.Connect(ctx, client.ConnOptions{}); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[user] = c
	return c, nil
}

func (s *sockets) claim(ctx context.Context, req dibs.ClaimRequest) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	c, err := s.conn(ctx, req.UserID)
	if err != nil {
		return answer{}, err
	}
	return answerOf(c.Claim(ctx, client.Tap{CampaignID: req.CampaignID, Quantity: req.Quantity, Key: req.Key}))
}

// close closes the connections, many at a time: each waits for the other side.
func (s *sockets) close() {
	var group errgroup.Group
	group.SetLimit(dialsAtOnce)
	for _, c := range s.conns {
		group.Go(func() error {
			c.Close()
			return nil
		})
	}
	// None of them returns an error.
	_ = group.Wait()
}
