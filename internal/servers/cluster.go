package servers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// slots is how many slots a cluster has.
const slots = 16384

// Cluster is three masters, each with a replica.
//
// Members and ids never change once it has started; who is master of which slots
// does. Methods may be called from several goroutines.
type Cluster struct {
	// Members are the masters, then their replicas in the same order.
	Members []*Redis
	ids     []string
}

// StartCluster starts a cluster with its files in the folder. A master that is
// gone for two seconds is replaced. The arguments are those of the members; Stop
// ends all.
//
// The servers do not move replicas between masters by themselves, so that a test
// knows which replica is promoted.
func StartCluster(ctx context.Context, dir string, args ...string) (_ *Cluster, err error) {
	c := &Cluster{}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	bus := make([]int, 6)
	for i := range 6 {
		r, err := startRedis(redisIn(dir, "member"+strconv.Itoa(i)), func(*Redis) (all []string, err error) {
			bus[i], err = freePort()
			return append([]string{
				"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no",
				"--cluster-allow-replica-migration", "no", "--cluster-port", strconv.Itoa(bus[i]), "--repl-diskless-sync-delay", "0",
			}, args...), err
		})
		if err != nil {
			return nil, err
		}
		c.Members = append(c.Members, r)
	}
	return c, c.join(ctx, bus)
}

// join makes the members one cluster.
// Each member gets a configuration epoch of its own first: members with equal epochs
// would settle by themselves whose slots win.
func (c *Cluster) join(ctx context.Context, bus []int) error {
	for i, r := range c.Members {
		id, err := r.text(ctx, "CLUSTER", "MYID")
		if err != nil {
			return err
		}
		c.ids = append(c.ids, id)
		if _, err := r.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return err
		}
		if i < 3 {
			from, to := strconv.Itoa(i*slots/3), strconv.Itoa((i+1)*slots/3-1)
			if _, err := r.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", from, to); err != nil {
				return err
			}
		}
		if _, err := c.Members[0].Do(ctx, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(r.port), strconv.Itoa(bus[i])); err != nil {
			return err
		}
	}
	for i, r := range c.Members[3:] {
		// It is refused until the master is known.
		err := await(ctx, "the following of a replica", func(ctx context.Context) (bool, error) {
			_, err := r.Do(ctx, "CLUSTER", "REPLICATE", c.ids[i])
			return err == nil, err
		})
		if err != nil {
			return err
		}
	}
	return c.Ready(ctx)
}

// Ready returns when every member that runs says that all slots are served,
// and knows all members and which are replicas that follow.
// Members that were killed are not asked, so six must be known and connected only
// while all run.
func (c *Cluster) Ready(ctx context.Context) error {
	return await(ctx, "the readiness of a cluster", func(ctx context.Context) (bool, error) {
		for _, r := range c.Members {
			if r.Process() == nil {
				continue
			}
			nodes, err := r.text(ctx, "CLUSTER", "NODES")
			if err != nil || strings.Count(nodes, "slave ") != 3 || strings.Count(nodes, "connected") != 6 ||
				strings.Contains(nodes, "disconnected") {
				return false, err
			}
			info, err := r.text(ctx, "CLUSTER", "INFO")
			if err != nil || !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_slots_ok:16384") {
				return false, err
			}
			fields, err := r.Info(ctx, "replication")
			if err != nil || fields["role"] == "slave" && fields["master_link_status"] != "up" {
				return false, err
			}
		}
		return true, nil
	})
}

// URL is the cluster.
func (c *Cluster) URL() string {
	return fmt.Sprintf("%s?addr=%s&addr=%s", c.Members[0].URL(), c.Members[1].Addr(), c.Members[2].Addr())
}

// Owner returns the slot of a key, and the member that serves it.
// During a failover two members may serve a key for a moment; the first master that
// does is returned. An error means that nobody did just now, and the caller may ask
// again.
func (c *Cluster) Owner(ctx context.Context, key string) (slot int64, owner *Redis, err error) {
	for _, r := range c.Members {
		if r.Process() == nil {
			continue
		}
		m, err := r.Do(ctx, "CLUSTER", "KEYSLOT", key)
		if err != nil {
			return 0, nil, err
		}
		if slot, err = m.ToInt64(); err != nil {
			return 0, nil, fmt.Errorf("servers: %w", err)
		}
		info, err := r.Info(ctx, "replication")
		if err != nil {
			return 0, nil, err
		}
		// A server that does not serve the slot says so.
		_, err = r.Do(ctx, "EXISTS", key)
		if err == nil && info["role"] == "master" {
			return slot, r, nil
		}
	}
	return 0, nil, errors.New("servers: nobody serves " + key)
}

// Migrate moves a slot from one member to another, key by key, while both
// serve it. between is called after each step.
// After an error the slot stays between the two; the test ends then.
func (c *Cluster) Migrate(ctx context.Context, slot int64, from, to *Redis, between func()) error {
	number := strconv.FormatInt(slot, 10)
	if _, err := to.Do(ctx, "CLUSTER", "SETSLOT", number, "IMPORTING", c.id(from)); err != nil {
		return err
	}
	if _, err := from.Do(ctx, "CLUSTER", "SETSLOT", number, "MIGRATING", c.id(to)); err != nil {
		return err
	}
	between()
	for {
		m, err := from.Do(ctx, "CLUSTER", "GETKEYSINSLOT", number, "1")
		if err != nil {
			return err
		}
		keys, err := m.AsStrSlice()
		if err != nil {
			return fmt.Errorf("servers: %w", err)
		}
		if len(keys) == 0 {
			break
		}
		if _, err := from.Do(ctx, "MIGRATE", "127.0.0.1", strconv.Itoa(to.port), keys[0], "0", "10000"); err != nil {
			return err
		}
		between()
	}
	// The new owner first: there is no moment in which nobody is it.
	for _, r := range []*Redis{to, from} {
		if _, err := r.Do(ctx, "CLUSTER", "SETSLOT", number, "NODE", c.id(to)); err != nil {
			return err
		}
	}
	return nil
}

// id is the name of a member in the cluster, empty for a server that is no member.
func (c *Cluster) id(of *Redis) string {
	for i, r := range c.Members {
		if r == of {
			return c.ids[i]
		}
	}
	return ""
}

// Stop kills all servers.
func (c *Cluster) Stop() {
	for _, r := range c.Members {
		r.Kill()
	}
}
