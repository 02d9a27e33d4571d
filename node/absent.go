package node

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

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
	if d.absent == nil {
		return router.Member{Number: d.number, Engine: d.engine}
	}
	if log := cfg.Service.Logger; log != nil {
		log.Error("a deployment of the engine cannot be reached: the node starts without it, and refuses the claims of its campaigns as unavailable until it can",
			"deployment", d.number, "place", d.place, "err", d.absent)
	}
	late := &latecomer{number: d.number, address: d.address, place: d.place, cfg: *cfg, ledger: n.Ledger.Deployments, secret: n.Ledger.Secret}
	return router.Member{Number: d.number, Open: late.open}
}

// latecomer is a deployment that could not be reached when the node started. It does not
// change.
type latecomer struct {
	number         int
	address, place string
	cfg            Config
	ledger         live.DeploymentLedger
	secret         func(ctx context.Context, name string, size int) ([]byte, error)
}

// lateTime bounds one attempt to open a latecomer.
const lateTime = 10 * time.Second

// open opens the deployment and makes sure that it is the one of its number; see
// router.Member.
func (l *latecomer) open(ctx context.Context) (router.Deployment, error) {
	ctx, cancel := context.WithTimeout(ctx, lateTime)
	defer cancel()
	e, err := l.cfg.openDeployment(ctx, l.address)
	if err == nil {
		if err = l.check(ctx, e); err == nil {
			return e, nil
		}
		err = errors.Join(err, e.Close(context.WithoutCancel(ctx)))
	}
	if errors.Is(err, errLedger) || redisengine.Unreachable(err) {
		return nil, fmt.Errorf("the deployment at %s: %w", l.place, err)
	}
	return nil, fmt.Errorf("%w: the deployment at %s: %w", live.ErrUnfit, l.place, err)
}

// errLedger says that the ledger could not be asked which deployment is expected.
var errLedger = errors.New("node: the deployments of the engine could not be read from the ledger")

// check returns an error unless the deployment belongs to the ledger and is the one of the
// latecomer's number there. One that was emptied is, and gets its identity back.
func (l *latecomer) check(ctx context.Context, e *redisengine.Engine) error {
	ledger, err := l.secret(ctx, "identity", identitySize)
	if err != nil {
		return errors.Join(errLedger, err)
	}
	known, err := l.ledger.Deployments(ctx)
	if err != nil {
		return errors.Join(errLedger, err)
	}
	if err := e.Abilities().Bind(ctx, hex.EncodeToString(ledger)); err != nil {
		return err
	}
	at := slices.IndexFunc(known, func(d live.Deployment) bool { return d.Number == l.number })
	if at < 0 {
		return fmt.Errorf("%w: the ledger does not know deployment %d any more", ErrDeployments, l.number)
	}
	has, err := e.Identify(ctx, known[at].Identity)
	if err != nil || has == known[at].Identity {
		return err
	}
	if other := slices.IndexFunc(known, func(d live.Deployment) bool { return d.Identity == has }); other >= 0 {
		return fmt.Errorf("%w: what answers there is %s, and deployment %d is expected: correct %s", ErrDeployments, known[other].String(), l.number, setting)
	}
	return fmt.Errorf("%w: what answers there is not deployment %d: it has an identity that the ledger does not know (the key dibs:deployment)", ErrDeployments, l.number)
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
