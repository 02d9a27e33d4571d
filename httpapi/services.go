package httpapi

import (
	"reflect"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi/internal/pages"
	"github.com/dibs-dev/dibs/internal/web"
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
	AdminLog        AdminLog
	Memory          Memory
}

// Catalog is what the pages that many users read are made from.
type Catalog = pages.Catalog

// Memory remembers the answers to requests with an Idempotency-Key.
type Memory = web.Memory

// ServicesOf returns the services of a node. It is the one place that knows which
// type fills which field.
func ServicesOf(s *dibs.Service) Services {
	return Services{
		Claimer: s, Claims: s, ClaimSteps: s, Orders: s, Campaigns: s, Stock: s, Catalog: s, PublicCampaigns: s, Products: s,
		Accounts: s, Announcements: s, Events: s, Webhooks: s, Users: s, Operations: s, Keys: s, AdminLog: s, Memory: s,
	}
}

// missing lists the fields that are not set.
func (s Services) missing() (names []string) {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if v.Field(i).IsNil() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}
