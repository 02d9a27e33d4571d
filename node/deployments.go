package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/engine/router"
	"github.com/dibs-dev/dibs/live"
)

// ErrDeployments: the deployments of the engine that a node is to use are not those that
// the ledger knows, or the same one twice.
var ErrDeployments = errors.New("node: the deployments of the engine do not fit")

// setting is where operators name the deployments, for errors.
const setting = "--engine (Config.Engine and Config.Deployments)"

// identitySize is how many bytes name a ledger.
const identitySize = 16

// deployment is a Redis that a node was told to use.
type deployment struct {
	address, place string
	// engine is nil for one that could not be reached at the start, and absent is why then.
	engine *redisengine.Engine
	absent error
	// identity is empty for one that could not be reached.
	identity string
	// number is the deployment's in the ledger.
	number int
}

// openRedis opens all deployments. Those that were opened before one failed are among the
// node's, which closes them. Of several, one is enough: the others may be ones that cannot
// be reached, but none that answers and cannot be used.
func (n *Node) openRedis(ctx context.Context, cfg *Config) error {
	addresses := append([]string{cfg.Engine}, cfg.Deployments...)
	n.deployments = make([]deployment, len(addresses))
	var all errgroup.Group
	for i, address := range addresses {
		d := &n.deployments[i]
		d.address, d.place = address, redisengine.Place(address)
		all.Go(func() error {
			e, err := cfg.openDeployment(ctx, address)
			d.engine = e
			switch {
			case err == nil || len(addresses) == 1:
				return err
			case redisengine.Unreachable(err):
				d.absent = d.failed(err)
				return nil
			}
			return d.failed(err)
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	return n.somePresent()
}

// failed names the deployment of an error.
func (d *deployment) failed(err error) error {
	return fmt.Errorf("the deployment at %s: %w", d.place, err)
}

// openDeployment opens the deployment at an address and holds it to the level.
func (cfg *Config) openDeployment(ctx context.Context, address string) (*redisengine.Engine, error) {
	e, err := redisengine.Open(ctx, redisengine.Config{
		URL: address, Login: cfg.Login, Durability: EngineLevel(cfg.Durability), DurabilityLost: cfg.DurabilityLost, Logger: cfg.Service.Logger,
	})
	if err != nil {
		return nil, err
	}
	if err := cfg.hold(e); err != nil {
		return nil, errors.Join(err, e.Close(ctx))
	}
	return e, nil
}

// closeRedis closes the deployments that no engine of the node has yet.
func (n *Node) closeRedis(ctx context.Context) error {
	var errs []error
	for i := range n.deployments {
		if e := n.deployments[i].engine; e != nil {
			errs = append(errs, e.Close(ctx))
		}
	}
	return errors.Join(errs...)
}

// join makes the deployments the node's engine: one alone, as it is, or several behind a
// router. It returns what tells the deployment of a shard.
func (n *Node) join(ctx context.Context, cfg *Config) (func(context.Context, dibs.ShardID) (int, error), error) {
	if err := n.apart(ctx); err != nil {
		return nil, err
	}
	if err := n.bind(ctx); err != nil {
		return nil, err
	}
	if err := n.enter(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(n.deployments, func(a, b deployment) int { return a.number - b.number })
	if len(n.deployments) == 1 {
		one := n.deployments[0]
		n.Engine = one.engine
		return func(context.Context, dibs.ShardID) (int, error) { return one.number, nil }, nil
	}
	members := make([]router.Member, len(n.deployments))
	for i := range n.deployments {
		members[i] = n.member(cfg, &n.deployments[i])
	}
	e, err := router.New(ctx, router.Config{Members: members, Ledger: n.Ledger, Logger: cfg.Service.Logger, Now: cfg.Now})
	if err != nil {
		return nil, fmt.Errorf("node: reading which deployment has which shard: %w", err)
	}
	n.Engine, n.first = e, e.First
	return e.NumberOf, nil
}

// apart returns an error when two of several deployments have a server in common, be it by
// two names of it, or by two of its databases.
func (n *Node) apart(ctx context.Context) error {
	if len(n.deployments) == 1 {
		return nil
	}
	seen := make(map[string]string)
	for i := range n.deployments {
		d := &n.deployments[i]
		if d.engine == nil {
			continue
		}
		servers, err := d.engine.Servers(ctx)
		if err != nil {
			return d.failed(err)
		}
		runs := make(map[string]bool)
		for _, run := range servers {
			runs[run] = run != ""
		}
		for run, is := range runs {
			if other, twice := seen[run]; is && twice {
				return fmt.Errorf("%w: %s and %s are the same server: name each deployment once in %s", ErrDeployments, other, d.place, setting)
			}
			seen[run] = d.place
		}
	}
	return nil
}

// bind makes sure that deployments and ledger belong together, and gives each deployment
// an identity that has none.
func (n *Node) bind(ctx context.Context) error {
	identity, err := n.Ledger.Secret(ctx, "identity", identitySize)
	if err != nil {
		return fmt.Errorf("node: reading the ledger's identity: %w", err)
	}
	for i := range n.deployments {
		d := &n.deployments[i]
		if d.engine == nil {
			continue
		}
		if err = d.engine.Abilities().Bind(ctx, hex.EncodeToString(identity)); err == nil {
			d.identity, err = d.engine.Identify(ctx, rand.Text())
		}
		switch {
		case err != nil && len(n.deployments) > 1:
			return d.failed(err)
		case err != nil:
			return err
		}
	}
	return nil
}

// enter finds the deployments in the ledger, and enters those that it does not know.
func (n *Node) enter(ctx context.Context) error {
	for range dibs.MaxConflicts {
		known, err := n.Ledger.Deployments.Deployments(ctx)
		if err != nil {
			return fmt.Errorf("node: reading the deployments of the engine: %w", err)
		}
		save, err := match(known, n.deployments)
		if err == nil && len(save) > 0 {
			err = n.Ledger.SaveDeployments(ctx, known, save)
		}
		// Another node may start at the same time.
		if !errors.Is(err, dibs.ErrConflict) {
			return err
		}
	}
	return dibs.Unavail(dibs.EffectNone, dibs.ErrConflict)
}

// match gives the deployments found the numbers that they have in the ledger, and returns
// the rows to store. It refuses to go on without a deployment that has live shards.
//
// A deployment is known by its identity. One without a known identity takes the place of a
// missing one when it is a Redis that was emptied: at the same address. A node with one
// deployment alone may also move to another Redis once the servers of the one before are
// silent, and loads its campaigns from the ledger. One that cannot be reached is taken for
// the one that was at its address last; whether it is, is found out when it answers.
func match(known []live.Deployment, found []deployment) (save []live.Deployment, err error) {
	rows := slices.DeleteFunc(slices.Clone(known), func(d live.Deployment) bool { return d.Number == 0 })
	if err := first(known, rows, found); err != nil {
		return nil, err
	}
	for i := range found {
		found[i].number = 0
		if found[i].absent != nil {
			continue
		}
		if twin := slices.IndexFunc(found[:i], func(d deployment) bool { return d.identity == found[i].identity }); twin >= 0 {
			return nil, fmt.Errorf("%w: %s is a copy of %s: name each deployment once in %s, or remove the key dibs:deployment from the copy",
				ErrDeployments, found[i].place, found[twin].place, setting)
		}
		for _, row := range rows {
			if row.Identity == found[i].identity {
				found[i].number = row.Number
			}
		}
	}
	next := 1
	for _, row := range rows {
		next = max(next, row.Number+1)
		if slices.ContainsFunc(found, func(d deployment) bool { return d.number == row.Number }) {
			continue
		}
		heir := slices.IndexFunc(found, func(d deployment) bool {
			return d.number == 0 && (d.place == row.Place || len(rows) == 1 && len(found) == 1 && row.Silent)
		})
		if heir >= 0 {
			found[heir].number = row.Number
			continue
		}
		if row.Live > 0 {
			return nil, missing(&row)
		}
	}
	for i := range found {
		d := &found[i]
		switch {
		case d.absent != nil && d.number == 0:
			return nil, unknown(d)
		case d.absent != nil:
			continue
		case d.number == 0:
			d.number, next = next, next+1
		}
		now := live.Deployment{Number: d.number, Identity: d.identity, Place: d.place}
		if !slices.ContainsFunc(rows, func(row live.Deployment) bool {
			return row.Number == now.Number && row.Identity == now.Identity && row.Place == now.Place
		}) {
			save = append(save, now)
		}
	}
	return save, nil
}

// first refuses to begin with several deployments while live shards are on one that was
// not noted: the one there was, of a version that had one alone.
func first(known, rows []live.Deployment, found []deployment) error {
	if len(rows) > 0 || len(known) == 0 || known[0].Live == 0 || len(found) == 1 {
		return nil
	}
	return fmt.Errorf("%w: live campaigns are on the one Redis that there was, and the ledger does not know yet which it is: "+
		"start once with its address alone in %s, then add the others", ErrDeployments, setting)
}

// missing refuses to start without a deployment that has live shards.
func missing(row *live.Deployment) error {
	return fmt.Errorf("%w: %s has %d shards of live campaigns and is missing: name its address, too, in %s", ErrDeployments, row.String(), row.Live, setting)
}
