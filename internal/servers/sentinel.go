package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// sentinelSet is the name of the set that the sentinels watch.
const sentinelSet = "dibs"

// Sentinel is a master with two replicas, and three sentinels that watch them.
//
// The lists do not change; which member is the master does, see Master.
type Sentinel struct {
	// Members are the servers; the first one began as the master.
	Members []*Redis
	Watch   []*Redis
}

// StartSentinel starts a set with its files in the folder. A master that does
// not answer for a second is replaced. The arguments are those of the members;
// Stop ends all.
func StartSentinel(ctx context.Context, dir string, args ...string) (_ *Sentinel, err error) {
	s := &Sentinel{}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	for i := range 3 {
		// A server that falls back synchronises without a wait for others to join in.
		all := append([]string{"--repl-diskless-sync-delay", "0", "--repl-timeout", "10"}, args...)
		if i > 0 {
			all = append(all, "--replicaof", "127.0.0.1 "+strconv.Itoa(s.Members[0].port))
		}
		r, err := StartRedis(filepath.Join(dir, "member"+strconv.Itoa(i)), all...)
		if err != nil {
			return nil, err
		}
		s.Members = append(s.Members, r)
	}
	// A sentinel looks for replicas at once, and then only every ten seconds.
	err = await(ctx, "the following of two replicas", func(ctx context.Context) (bool, error) { return follow(ctx, s.Members[0]) })
	if err != nil {
		return nil, err
	}
	for i := range 3 {
		r, err := startRedis(redisIn(dir, "sentinel"+strconv.Itoa(i)), watch(s.Members[0]))
		if err != nil {
			return nil, err
		}
		s.Watch = append(s.Watch, r)
	}
	return s, s.Ready(ctx)
}

// watch writes the settings of a sentinel of a master.
func watch(master *Redis) func(*Redis) ([]string, error) {
	return func(r *Redis) ([]string, error) {
		r.first = []string{filepath.Join(r.Dir(), "sentinel.conf"), "--sentinel"}
		return nil, r.server.write("sentinel.conf", strings.Join([]string{
			// Two of the three sentinels must agree that the master is gone.
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", sentinelSet, master.port),
			fmt.Sprintf("sentinel down-after-milliseconds %s 1000", sentinelSet),
			fmt.Sprintf("sentinel failover-timeout %s 5000", sentinelSet),
			fmt.Sprintf("sentinel parallel-syncs %s 2", sentinelSet),
			"",
		}, "\n"))
	}
}

// URL is the set, by its sentinels.
func (s *Sentinel) URL() string {
	return fmt.Sprintf("%s?addr=%s&addr=%s&master_set=%s", s.Watch[0].URL(), s.Watch[1].Addr(), s.Watch[2].Addr(), sentinelSet)
}

// Ready returns when both replicas follow and every sentinel knows all of them.
func (s *Sentinel) Ready(ctx context.Context) error {
	return await(ctx, "the readiness of a Sentinel set", func(ctx context.Context) (bool, error) {
		for _, w := range s.Watch {
			m, err := w.Do(ctx, "SENTINEL", "MASTER", sentinelSet)
			if err != nil {
				return false, err
			}
			fields, err := m.AsStrMap()
			if err != nil || fields["num-slaves"] != "2" || fields["num-other-sentinels"] != "2" || fields["flags"] != "master" {
				return false, err
			}
		}
		master, err := s.Master(ctx)
		if err != nil {
			return false, err
		}
		return follow(ctx, master)
	})
}

// follow reports whether two replicas of a master are in step.
func follow(ctx context.Context, master *Redis) (bool, error) {
	info, err := master.Info(ctx, "replication")
	if err != nil {
		return false, err
	}
	return strings.Contains(info["slave0"], "state=online") && strings.Contains(info["slave1"], "state=online"), nil
}

// Master is the member that most sentinels name as the master and that says so
// itself.
// An error means that they do not agree yet, or that the member has not learnt of its
// promotion: ask again.
func (s *Sentinel) Master(ctx context.Context) (*Redis, error) {
	votes := map[string]int{}
	for _, w := range s.Watch {
		m, err := w.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelSet)
		if err != nil {
			continue
		}
		if addr, err := m.AsStrSlice(); err == nil && len(addr) == 2 {
			votes[net.JoinHostPort(addr[0], addr[1])]++
		}
	}
	for _, r := range s.Members {
		if votes[r.Addr()] < 2 {
			continue
		}
		info, err := r.Info(ctx, "replication")
		if err != nil {
			return nil, err
		}
		if info["role"] != "master" {
			return nil, fmt.Errorf("servers: %s is to be the master and is %s", r.Addr(), info["role"])
		}
		return r, nil
	}
	return nil, fmt.Errorf("servers: the sentinels do not agree: %v", votes)
}

// Prefer makes a member the only one to be promoted.
// Redis never promotes a replica of priority 0. Members that do not run keep what
// they had.
func (s *Sentinel) Prefer(ctx context.Context, next *Redis) error {
	var errs []error
	for _, r := range s.Members {
		if r.Process() == nil {
			continue
		}
		priority := "0"
		if r == next {
			priority = "1"
		}
		_, err := r.Do(ctx, "CONFIG", "SET", "replica-priority", priority)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Promoted returns when a member has become the master.
func (s *Sentinel) Promoted(ctx context.Context, next *Redis) error {
	return await(ctx, "the promotion of "+next.Addr(), func(ctx context.Context) (bool, error) {
		r, err := s.Master(ctx)
		return r == next, err
	})
}

// Stop kills all servers.
func (s *Sentinel) Stop() {
	for _, r := range append(s.Watch, s.Members...) {
		r.Kill()
	}
}
