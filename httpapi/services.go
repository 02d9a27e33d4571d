package httpapi

import (
	"context"
	"reflect"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/claims"
	"github.com/dibs-dev/dibs/httpapi/internal/viewcache"
	"github.com/dibs-dev/dibs/internal/web"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/orders"

	"github.com/dibs-dev/dibs/node"
)

// Services are what the handlers call, a field for each group of routes. All are
// required, and are called concurrently.
type Services struct {
	Claimer         Claimer
	Claims          Claims
	ClaimSteps      ClaimSteps
	Orders          Orders
	Campaigns       Campaigns
	Stock           Stock
	Catalog         Catalog
	PublicCampaigns PublicCampaigns
	Products        Products
	Accounts        Accounts
	Announcements   Announcements
	Events          Events
	Webhooks        Webhooks
	Users           Users
	Operations      Operations
	Keys            Keys
	KeyStore        KeyStore
	AdminLog        AdminLog
	Revocations     Revocations
	Sessions        Sessions
	Approvals       Approvals
	Memory          Memory
}

// Catalog is what the pages that many users read are made from.
type Catalog = viewcache.Catalog

// Memory remembers the answers to requests with an Idempotency-Key.
type Memory = web.Memory

// ServicesOf returns the services of a node. It is the one place that knows which
// type fills which field.
func ServicesOf(s *node.Service) Services {
	campaigns := campaignDoor{s.Campaigns, s}
	return Services{
		Claimer: s.Claims, Claims: s.Claims, ClaimSteps: s.Orders, Orders: orderDoor{s.Orders, s.Claims}, Campaigns: campaigns,
		Stock: campaigns, Catalog: catalog{campaigns, s.Live.Snapshots, s.Live.Registry}, PublicCampaigns: s.Live.Lookups,
		Products: s.Products, Accounts: s.Funds, Announcements: s.Announcements, Events: s.Events, Webhooks: s.Webhooks,
		Users: s.Erasures, Operations: operationDoor{s, s.Audit}, Keys: s.Access, KeyStore: s.Access, AdminLog: s.Access,
		Revocations: s.Revocations, Sessions: s.Sessions, Approvals: s.Approvals, Memory: s.Access,
	}
}

// campaignDoor is Campaigns and Stock: campaigns, and the node's numbers of them.
type campaignDoor struct {
	*campaigns.Campaigns
	*node.Service
}

// orderDoor is Orders: orders, and users' own claims.
type orderDoor struct {
	*orders.Orders
	*claims.Claims
}

// operationDoor is Operations: the node's health and numbers, and its audit.
type operationDoor struct {
	*node.Service
	*audit.Audit
}

// catalog is viewcache.Catalog.
type catalog struct {
	campaignDoor
	snapshots *live.Snapshots
	registry  *live.Registry
}

// Get tells where a campaign stands.
func (c catalog) Get(ctx context.Context, id string) (dibs.Snapshot, error) {
	return c.snapshots.Get(ctx, id)
}

// CatalogVersion rises when any campaign changes.
func (c catalog) CatalogVersion() int64 { return c.registry.CatalogVersion() }

// missing lists the fields that are not set.
// Every field is an interface, so IsNil may be asked of it.
func (s Services) missing() (names []string) {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if v.Field(i).IsNil() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}
