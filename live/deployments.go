package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibs-dev/dibs"
)

// MaxDeployments is how many deployments an engine may have.
const MaxDeployments = 64

// ErrOtherDeployment says that a shard is on another deployment of the engine than
// the one that was to open it, or on one that this node's settings do not name.
var ErrOtherDeployment = errors.New("dibs: the shard is on another deployment of the engine: name that one in --engine, " +
	"or, when it is gone for good and the campaign is over, give the shard up with dibs campaign abandon-shard")

// ErrAway says that a deployment has not answered for some seconds.
var ErrAway = errors.New("dibs: the deployment does not answer, and is asked every second whether it does again")

// ErrUnfit says that a deployment answers and cannot be used, such as one that is not
// the one of its number. It is tried again all the same, since its settings may change.
var ErrUnfit = errors.New("dibs: the deployment answers and cannot be used")

// Deployment is a part of the engine with a Redis of its own: a server, a Sentinel
// group or a Cluster. The ledger knows all that there ever were.
type Deployment struct {
	// Number names the deployment among those of the ledger, from 1. Number 0 stands
	// for the shards that were opened on a server before the ledger knew of
	// deployments.
	Number int
	// Identity is a random text that was written into the deployment once.
	Identity string
	// Place is where a node reached the deployment last, without user and password.
	Place string
	// Live is how many shards of live campaigns the deployment has.
	Live int
	// Silent reports whether none of the servers that hold these shards was seen alive
	// within dibs.ServerLife.
	Silent bool
}

// String names the deployment for operators.
func (d *Deployment) String() string { return fmt.Sprintf("deployment %d (%s)", d.Number, d.Place) }

// DeploymentLedger keeps the deployments of an engine, and which of them has which
// shard. LoadShard and Fence of Ledger write the latter.
type DeploymentLedger interface {
	// Deployments lists the deployments by their numbers. Number 0 is among them when
	// it has live shards.
	Deployments(ctx context.Context) ([]Deployment, error)
	// SaveDeployments stores identity and place of deployments, of which some may be
	// new. Number 1, when it is new, gets the shards of number 0. ErrConflict, and no
	// change, when the identities of the ledger are not those of known any more.
	SaveDeployments(ctx context.Context, known, save []Deployment) error
	// DeploymentOf returns the number of the deployment that a shard was opened on
	// last; 0 when it was opened on none. ErrNotFound.
	DeploymentOf(ctx context.Context, shard dibs.ShardID) (int, error)
	// Placements returns the deployments of the shards, 0 for none, of campaigns that are
	// published, paused or ended and whose window ends after a time.
	Placements(ctx context.Context, after time.Time) (map[dibs.ShardID]int, error)
}

// DeploymentError is a failure of one deployment of several. It wraps the cause.
type DeploymentError struct {
	// Number is the deployment's in the ledger.
	Number int
	Cause  error
}

// Error names the deployment and the cause.
func (e *DeploymentError) Error() string {
	return fmt.Sprintf("deployment %d of the engine: %v", e.Number, e.Cause)
}

// Unwrap returns the cause.
func (e *DeploymentError) Unwrap() error { return e.Cause }

// DeploymentFailed reports whether an error is that of one deployment of several, which is
// away or fails: the other shards can be asked all the same.
func DeploymentFailed(err error) bool {
	_, failed := errors.AsType[*DeploymentError](err)
	return failed
}

// awaits reports whether an error is that of a deployment which is away.
func awaits(err error, away map[int]error) bool {
	failed, ok := errors.AsType[*DeploymentError](err)
	return ok && away[failed.Number] != nil
}
