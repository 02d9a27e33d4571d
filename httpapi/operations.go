package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/dibs-dev/dibs"
)

// timeView is the server's time, for countdowns.
type timeView struct {
	Now time.Time `json:"now"`
}

// aliveView is the answer of /healthz.
type aliveView struct {
	Status  string `json:"status"`
	Version string `json:"version"`
}

// verifyInput names the campaigns to verify.
type verifyInput struct {
	Campaigns []string `query:"campaign,explode" maxItems:"100" doc:"only these, product:ID for a product's regular orders; default all"`
}

// repairBody asks for a repair.
type repairBody struct {
	Repair    bool     `json:"repair" doc:"must be true: GET compares without changing anything"`
	Campaigns []string `json:"campaigns,omitempty" maxItems:"100" doc:"only these, product:ID for a product's regular orders; default all"`
	// OlderLedger decides about campaigns that are halted.
	OlderLedger dibs.OlderLedger `json:"older_ledger,omitempty" enum:"continue,end" doc:"what to do about campaigns whose ledger was restored from a backup that is older than their journal: continue sells again what the lost claims held, end ends the campaign; without it they stay halted"`
}

// registerVerify adds what compares engine and ledger, and puts them right.
func (a *api) registerVerify() {
	register(a, operation{
		method: http.MethodGet, path: "/v1/verify", id: "verify", tag: tagAdmin, access: adminOnly, strictQuery: true,
		summary:     "Compare engine and ledger, promise by promise",
		description: "Reads all that was ever claimed, which may take minutes.",
	}, func(ctx context.Context, _ *call, in *verifyInput) (dibs.Report, error) {
		r, err := a.svc.Verify(ctx, in.Campaigns...)
		if err != nil {
			return dibs.Report{}, err
		}
		return *r, nil
	})
	change(a, operation{
		method: http.MethodPost, path: "/v1/verify", id: "repair", tag: tagAdmin, access: adminOnly, maxBody: a.cfg.MaxBody,
		summary: "Compare, put right what can be, and compare again", example: `{"repair":true}`,
		description: "Counts sums afresh, settles what is in quarantine and can be, and loads an engine anew that differs from a ledger " +
			"that is whole. Claims are never changed. `steps` says what was done, and of what was not, what to do. The same again changes nothing.",
	}, func(ctx context.Context, _ *call, _ *struct{}, body *repairBody) (dibs.RepairReport, error) {
		if !body.Repair {
			return dibs.RepairReport{}, dibs.Invalid(dibs.Fault{Field: "/repair", Problem: dibs.Text{
				EN: "must be true: GET compares without changing anything", ZH: "必须为 true：仅比较请使用 GET",
			}})
		}
		r, err := a.svc.Repair(ctx, dibs.RepairRequest{Campaigns: body.Campaigns, OlderLedger: body.OlderLedger})
		if err != nil {
			return dibs.RepairReport{}, err
		}
		return *r, nil
	})
}

func (a *api) registerOperations() {
	a.registerVerify()
	register(a, operation{
		method: http.MethodGet, path: "/v1/time", id: "time", tag: tagCatalog, access: open, summary: "Tell the time, for countdowns",
	}, func(_ context.Context, c *call, _ *struct{}) (timeView, error) {
		c.Header()["Cache-Control"] = noStore
		return timeView{Now: a.cfg.Now().UTC()}, nil
	})
	register(a, operation{
		method: http.MethodGet, path: "/healthz", id: "healthz", tag: tagOps, access: open, summary: "Is the process alive",
	}, func(_ context.Context, c *call, _ *struct{}) (aliveView, error) {
		c.Header()["Cache-Control"] = noStore
		return aliveView{Status: "ok", Version: a.cfg.Version}, nil
	})
	register(a, operation{
		method: http.MethodGet, path: "/readyz", id: "readyz", tag: tagOps, access: open, summary: "Can it do its work",
		description: "Each dependency by name, the durability of a yes, and how much there is to do. 503 with the same body while it cannot, or is overloaded.",
	}, func(ctx context.Context, c *call, _ *struct{}) (dibs.HealthView, error) {
		c.Header()["Cache-Control"] = noStore
		h := a.svc.Health(ctx)
		if a.cfg.Overload != nil {
			h.SetOverload(a.cfg.Overload.View())
		}
		if !h.Ready {
			c.code = http.StatusServiceUnavailable
		}
		return h, nil
	})
	a.plain(operation{
		method: http.MethodGet, path: "/metrics", id: "metrics", tag: tagOps, access: open,
		summary: "Numbers for Prometheus",
	}, "text/plain; version=0.0.4", nil)
	a.routes.inner("GET /metrics", a.metrics.handler().ServeHTTP)
}

// registerDocuments serves the document and its page. It comes last, when the
// document is complete.
func (a *api) registerDocuments() error {
	a.plain(operation{
		method: http.MethodGet, path: "/openapi.json", id: "openapi", tag: tagOps, access: open,
		summary: "This document",
	}, "application/json", nil)
	a.plain(operation{
		method: http.MethodGet, path: "/docs", id: "docs", tag: tagOps, access: open,
		summary: "This document for people",
	}, "text/html; charset=utf-8", nil)
	doc, raw, err := a.documentJSON()
	if err != nil {
		return err
	}
	page, err := renderDocs(doc, a.examples)
	if err != nil {
		return err
	}
	a.routes.HandleFunc("GET /openapi.json", a.static("application/json", raw))
	a.routes.HandleFunc("GET /docs", a.static("text/html; charset=utf-8", page))
	return nil
}

// docsPolicy lets the page use its own style sheet and nothing else.
const docsPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (a *api) static(contentType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", contentType)
		h.Set("Content-Security-Policy", docsPolicy)
		h.Set("Cache-Control", "public, max-age=60")
		a.write(w, body)
	}
}
