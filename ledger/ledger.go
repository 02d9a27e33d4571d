// Package ledger says what a database has to do for dibs: it is the lasting truth.
//
// Each service declares the part of the ledger that it needs; Ledger has one of
// each. One database fills them all: package ledger/sqlledger does, on SQLite,
// MySQL, MariaDB and PostgreSQL, and package ledger/ledgertest checks it.
//
// A new database begins in package internal/sqldb, with a dialect: how it is connected
// to and what its SQL looks like. Its migrations and statements are in package
// ledger/sqlledger.
package ledger

import (
	"context"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/claims"
	"github.com/dibs-dev/dibs/erasure"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/funds"
	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/orders"
	"github.com/dibs-dev/dibs/webhooks"
)

// Ledger has the parts of one database, by the service that uses each. Every
// method is one transaction, safe for concurrent use, and honours its context.
// Transient faults of the database are *dibs.Error of Unavailable.
type Ledger struct {
	Live      live.Ledger
	Claims    claims.Ledger
	Campaigns campaigns.Ledger
	Orders    orders.Ledger
	Funds     funds.Ledger
	Announce  announce.Ledger
	Events    events.Ledger
	Webhooks  webhooks.Ledger
	Access    access.Ledger
	Revoked   access.RevocationLedger
	Sessions  access.SessionLedger
	Approvals access.ApprovalLedger
	Erasure   erasure.Ledger
	Audit     audit.Ledger
	Audiences gate.AudienceLedger
	Rooms     gate.RoomLedger
	// Deployments are those of the engine.
	Deployments live.DeploymentLedger
	Database    Database
}

// Database is what concerns the database as a whole.
type Database interface {
	// Secret returns bytes that are made once for a ledger, under a name, and kept.
	Secret(ctx context.Context, name string, size int) ([]byte, error)
	// Ping returns nil when the database answers.
	Ping(ctx context.Context) error
	// Close ends all connections.
	Close() error
}
