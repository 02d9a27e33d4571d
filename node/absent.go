package node

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/engine/router"
	"github.com/dibs-dev/dibs/live"
)

// A node with several deployments starts when one of them can be reached: otherwise the
// loss of one would keep all nodes down, and with them the command that gives up what is on
// it. The others are opened in the background, as the deployments that they were taken for.

// somePresent returns why no deployment can be reached; nil when one can.
func (n *Node) somePresent() error {
	var errs []error
	for i := range n.deployments {
		if n.deployments[i].engine != nil {
			return nil
		}
		errs = append(errs, n.deployments[i].absent)
	}
	return errors.Join(errs...)
}

// unknown refuses to start without a deployment that the ledger does not know: it is new,
// and so there is nothing that could be lost by waiting for it, or its address is wrong.
func unknown(d *deployment) error {
	return fmt.Errorf("%w: %s cannot be reached, and the ledger knows no deployment there: start it, or correct %s: %w", ErrDeployments, d.place, setting, d.absent)
}

// member is a deployment as the router takes it. One that could not be reached it opens in
// the background.
func (n *Node) member(cfg *Config, d *deployment) router.Member {
	x := &expected{number: d.number, address: d.address, place: d.place, cfg: *cfg, ledger: n.Ledger.Deployments, secret: n.Ledger.Secret}
	if d.absent == nil {
		return router.Member{Number: d.number, Engine: d.engine, Check: x.again}
	}
	cfg.Service.Logger.Error("a deployment of the engine cannot be reached: the node starts without it, and refuses the claims of its campaigns as unavailable until it can",
		"deployment", d.number, "place", d.place, "err", d.absent)
	return router.Member{Number: d.number, Open: x.open, Check: x.again}
}

// expected is a deployment as the ledger knows it: what comes late, or comes back, has to be
// it. It does not change.
type expected struct {
	number         int
	address, place string
	cfg            Config
	ledger         live.DeploymentLedger
	secret         func(ctx context.Context, name string, size int) ([]byte, error)
}

// lateTime bounds one attempt to open a deployment that was absent.
const lateTime = 10 * time.Second

// open opens the deployment and makes sure that it is the one of its number; see
// router.Member.
func (x *expected) open(ctx context.Context) (router.Deployment, error) {
	ctx, cancel := context.WithTimeout(ctx, lateTime)
	defer cancel()
	e, err := x.cfg.openDeployment(ctx, x.address)
	if err == nil {
		if err = x.check(ctx, e); err == nil {
			return e, nil
		}
		err = errors.Join(err, e.Close(context.WithoutCancel(ctx)))
	}
	return nil, x.unfit(err)
}

// again makes sure that a deployment in use is still the one of its number; see
// router.Member.
func (x *expected) again(ctx context.Context, d router.Deployment) error {
	// The engine itself refuses claims while the level is not given: it looks now, so that
	// no claim is decided by what the server before gave.
	if err := d.Ping(ctx); redisengine.Unreachable(err) {
		return err
	}
	e, ok := d.(identified)
	if !ok {
		return fmt.Errorf("%w: a %T has no identity", live.ErrUnfit, d)
	}
	return x.unfit(x.check(ctx, e))
}

// identified is what is checked of a deployment; see redisengine.Engine.
type identified interface {
	Abilities() dibs.Abilities
	Identify(ctx context.Context, identity string) (string, error)
}

// unfit tells errors of a deployment that answers from those of one that does not, and from
// those of the ledger.
func (x *expected) unfit(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errLedger) || redisengine.Unreachable(err):
		return fmt.Errorf("the deployment at %s: %w", x.place, err)
	}
	return fmt.Errorf("%w: the deployment at %s: %w", live.ErrUnfit, x.place, err)
}

// errLedger says that the ledger could not be asked which deployment is expected.
var errLedger = errors.New("node: the deployments of the engine could not be read from the ledger")

// check returns an error unless the deployment belongs to the ledger and is the one of its
// number there. One that was emptied is, and gets its identity back.
func (x *expected) check(ctx context.Context, e identified) error {
	ledger, err := x.secret(ctx, "identity", identitySize)
	if err != nil {
		return errors.Join(errLedger, err)
	}
	known, err := x.ledger.Deployments(ctx)
	if err != nil {
		return errors.Join(errLedger, err)
	}
	if err := e.Abilities().Bind(ctx, hex.EncodeToString(ledger)); err != nil {
		return err
	}
	at := slices.IndexFunc(known, func(d live.Deployment) bool { return d.Number == x.number })
	if at < 0 {
		return fmt.Errorf("%w: the ledger does not know deployment %d any more", ErrDeployments, x.number)
	}
	has, err := e.Identify(ctx, known[at].Identity)
	if err != nil || has == known[at].Identity {
		return err
	}
	if other := slices.IndexFunc(known, func(d live.Deployment) bool { return d.Identity == has }); other >= 0 {
		return fmt.Errorf("%w: what answers there is %s, and deployment %d is expected: correct %s", ErrDeployments, known[other].String(), x.number, setting)
	}
	return fmt.Errorf("%w: what answers there is not deployment %d: it has an identity that the ledger does not know (the key dibs:deployment)", ErrDeployments, x.number)
}

// firstAddress returns the address of the first deployment that can be used now: limits
// are counted there. Empty for the memory engine.
func (n *Node) firstAddress() string {
	if len(n.deployments) == 0 {
		return ""
	}
	if n.first != nil {
		number := n.first()
		if at := slices.IndexFunc(n.deployments, func(d deployment) bool { return d.number == number }); at >= 0 {
			return n.deployments[at].address
		}
	}
	return n.deployments[0].address
}
