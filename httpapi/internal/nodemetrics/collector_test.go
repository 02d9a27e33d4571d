package nodemetrics

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
	claiming "github.com/dibs-dev/dibs/claims"
	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/node"
)

// still is a node with fixed numbers.
type still struct{ m node.Metrics }

func (s still) Observe() node.Metrics { return s.m }

func (still) Health(context.Context) api.HealthView {
	return api.HealthView{Ready: true, Durability: "durable", Dependencies: map[string]api.DependencyView{"ledger": {OK: true}, "engine": {}}, Deployments: map[int]bool{1: true, 2: false}}
}

// Each count of a node is shown once, under the names and units of the docs. Two
// reasons that share a word are one series.
func TestCollector(t *testing.T) {
	s := still{node.Metrics{
		ClaimMetrics: claiming.ClaimMetrics{Granted: 7},
		NodeMetrics: live.NodeMetrics{
			SettleTimes: dibs.Tally{Bounds: []int64{1e6, 1e9}, Counts: []int64{2, 3, 1}, Sum: 5e9},
			Campaigns:   []live.CampaignMetrics{{CampaignID: "phone", Remaining: 3, Low: true, LagMS: 1500}},
		},
	}}
	refused := &s.m.Campaigns[0].Refused
	refused[dibs.InvalidRequest], refused[dibs.TooLarge], refused[dibs.SoldOut] = 2, 3, 5
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(New(s, "v1")); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += "/" + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if h := m.GetHistogram(); h != nil {
				got[name] = h.GetSampleSum()
				for _, b := range h.Bucket {
					if b.GetUpperBound() == 1 {
						got[name+"/1s"] = float64(b.GetCumulativeCount())
					}
				}
			}
		}
	}
	for name, want := range map[string]float64{
		"dibs_granted_total": 7, "dibs_claims_total/granted": 7, "dibs_ready": 1, "dibs_dependency_up/ledger": 1, "dibs_dependency_up/engine": 0,
		"dibs_deployment_up/1": 1, "dibs_deployment_up/2": 0,
		"dibs_campaign_remaining/phone": 3, "dibs_campaign_low/phone": 1, "dibs_campaign_settle_lag_seconds/phone": 1.5,
		"dibs_campaign_refused_total/phone/invalid_request": 5, "dibs_campaign_refused_total/phone/sold_out": 5,
		"dibs_settle_transaction_seconds": 5, "dibs_settle_transaction_seconds/1s": 5,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v, %v, want %v", name, v, ok, want)
		}
	}
}
