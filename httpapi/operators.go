package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/faults"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/audit"
	"github.com/dibs-dev/dibs/node"
)

// Operations is what the handlers of operators, and the node's metrics, call.
type Operations interface {
	// Health checks the node's dependencies. It bounds the time of each check.
	Health(ctx context.Context) api.HealthView
	// Observe returns a snapshot of what the node counts, from memory.
	Observe() node.Metrics
	// Verify compares engine and ledger, and reads all that was ever claimed; all campaigns
	// without ids.
	Verify(ctx context.Context, campaignIDs ...string) (*audit.Report, error)
	// Repair verifies, repairs what it can without changing a claim, and verifies again. It
	// may be repeated.
	Repair(ctx context.Context, req audit.RepairRequest) (*audit.RepairReport, error)
}

// timeView is the server's time, for countdowns.
type timeView struct {
	Now time.Time `json:"now"`
}

// aliveView is the answer of /healthz.
type aliveView struct {
	Status string `json:"status"`
	// Version is shown where administrators are served.
	Version string `json:"version,omitempty" doc:"of dibs; the address for users alone does not show it"`
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
	OlderLedger audit.OlderLedger `json:"older_ledger,omitempty" enum:"continue,end" doc:"what to do about campaigns whose ledger was restored from a backup that is older than their journal: continue sells again what the lost claims held, end ends the campaign; without it they stay halted"`
}

// operationHandlers answer operators and their tools.
// Health and metrics need no credentials: a load balancer has none. Their routes show
// no data of users.
type operationHandlers struct {
	*routes
	operations Operations
	// overload may be nil.
	overload Overload
	version  string
	known    knownHealth
	// verifying has a place for each comparison of engine and ledger under way.
	verifying chan struct{}
}

// maxVerifications is how many comparisons a node makes at a time: each reads all that was ever claimed.
const maxVerifications = 2

var errVerifications = faults.Busy(30*time.Second, dibs.Textf("this node compares engine and ledger %d times already", "该节点正在进行 %d 次引擎与账本的比对", maxVerifications))

// mayVerify takes one of the places for comparisons; done gives it back.
func (h *operationHandlers) mayVerify() (done func(), err error) {
	select {
	case h.verifying <- struct{}{}:
		return func() { <-h.verifying }, nil
	default:
		return nil, errVerifications
	}
}

// healthFor is how long a check of the dependencies is believed. The route is open to
// everyone, and each check asks the engine and the ledger, and logs what is away.
const healthFor = 100 * time.Millisecond

// knownHealth is the last check. mu guards it and is held during a check, which bounds
// its own time: callers that come meanwhile wait, and then share what it found.
type knownHealth struct {
	mu   sync.Mutex
	view api.HealthView
	at   time.Time
}

// health returns how the dependencies are, as of healthFor ago at most.
// The check goes on when the caller that began it leaves: others wait for it.
func (h *operationHandlers) health(ctx context.Context) api.HealthView {
	k := &h.known
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.at) >= healthFor {
		k.view, k.at = h.operations.Health(context.WithoutCancel(ctx)), time.Now()
	}
	return k.view
}

func (h *operationHandlers) register() {
	register(h.routes, operation{
		method: http.MethodGet, path: "/v1/verify", id: "verify", tag: tagAdmin, access: adminOnly, strictQuery: true, long: true,
		summary:     "Compare engine and ledger, promise by promise",
		description: "Reads all that was ever claimed, which may take minutes. Two of these, or repairs, run at a time.",
	}, func(ctx context.Context, c *call, in *verifyInput) (audit.Report, error) {
		done, err := h.mayVerify()
		if err != nil {
			return audit.Report{}, err
		}
		defer done()
		return viewOf(func(r *audit.Report) audit.Report { return r.In(c.zh) })(h.operations.Verify(ctx, in.Campaigns...))
	})
	change(h.routes, operation{
		method: http.MethodPost, path: "/v1/verify", id: "repair", tag: tagAdmin, access: adminOnly, long: true,
		summary: "Compare, repair, and compare again", example: `{"repair":true}`,
		description: "Counts sums afresh, settles the entries in quarantine that can be settled, and loads an engine again that differs from a ledger " +
			"that is whole. Claims are never changed. `steps` lists what was done, and for the rest what to do. A repeat changes nothing.",
	}, h.repair)
	register(h.routes, operation{
		method: http.MethodGet, path: "/v1/time", id: "time", tag: tagCatalog, access: open, summary: "Show the server's time, for countdowns",
	}, func(_ context.Context, c *call, _ *struct{}) (timeView, error) {
		c.Header()["Cache-Control"] = web.NoStore
		return timeView{Now: h.now().UTC()}, nil
	})
	register(h.routes, operation{
		method: http.MethodGet, path: "/healthz", id: "healthz", tag: tagOps, access: open, summary: "Check that the process is alive",
	}, func(_ context.Context, c *call, _ *struct{}) (aliveView, error) {
		c.Header()["Cache-Control"] = web.NoStore
		if c.outside {
			return aliveView{Status: "ok"}, nil
		}
		return aliveView{Status: "ok", Version: h.version}, nil
	})
	register(h.routes, operation{
		method: http.MethodGet, path: "/readyz", id: "readyz", tag: tagOps, access: open, summary: "Check that the node can do its work",
		description: "Each dependency by name, the durability of a yes, and how much there is to do. 503 with the same body while it cannot, or is overloaded. " +
			"Of an engine of several deployments the warning names those that cannot decide claims; it is ready while one can.",
	}, h.ready)
	h.describePlain(&operation{
		method: http.MethodGet, path: "/metrics", id: "metrics", tag: tagOps, access: open,
		summary: "Metrics for Prometheus",
	}, "text/plain; version=0.0.4")
	h.handleInside("GET /metrics", promhttp.HandlerFor(h.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP)
}

// `repair` must be in the body, so that a POST which was meant as a GET changes
// nothing.
func (h *operationHandlers) repair(ctx context.Context, _ *call, _ *struct{}, body *repairBody) (audit.RepairReport, error) {
	if !body.Repair {
		return audit.RepairReport{}, dibs.Invalid(dibs.Fault{Field: "/repair", Problem: dibs.Text{
			EN: "must be true: GET compares without changing anything", ZH: "必须为 true：仅比较请使用 GET",
		}})
	}
	done, err := h.mayVerify()
	if err != nil {
		return audit.RepairReport{}, err
	}
	defer done()
	return viewOf(itself[audit.RepairReport])(h.operations.Repair(ctx, audit.RepairRequest{Campaigns: body.Campaigns, OlderLedger: body.OlderLedger}))
}

func (h *operationHandlers) ready(ctx context.Context, c *call, _ *struct{}) (api.HealthView, error) {
	c.Header()["Cache-Control"] = web.NoStore
	v := h.health(ctx)
	if h.overload != nil {
		v.SetOverload(h.overload.View())
	}
	if !v.Ready {
		c.code = http.StatusServiceUnavailable
	}
	return v.In(c.zh), nil
}

// Diagnosis tells how the server that answers is set up, as the verbs config show and
// doctor do.
type Diagnosis interface {
	// Settings returns every effective setting, with secrets and passwords masked.
	Settings() []SettingView
	// Examine looks at all that the server depends on, which may take seconds. A problem
	// is a finding, never an error.
	Examine(ctx context.Context) []DiagnosisView
}

// SettingView is a setting as it counts.
type SettingView struct {
	Key   string `json:"key"`
	Value string `json:"value" doc:"secrets are masked"`
	From  string `json:"from" doc:"flag, environment, file or default"`
}

// DiagnosisView is a finding about a part of the system.
type DiagnosisView struct {
	Area     string        `json:"area" enum:"settings,machine,engine,ledger"`
	Standing dibs.Standing `json:"standing" enum:"OK,WARN,FAIL"`
	Subject  string        `json:"subject"`
	Found    string        `json:"found"`
	Wanted   string        `json:"wanted,omitempty"`
	Remedy   string        `json:"remedy,omitempty" doc:"what to do; absent where nothing is to be done"`
}

// examineWithin bounds an examination: a server that does not answer is a finding by
// then.
const examineWithin = 30 * time.Second

// registerDiagnosis adds the routes that show settings and findings to administrators without scopes:
// both are about all that the server does. examining has a place for the one
// examination that runs at a time, since each of them tries the databases.
func registerDiagnosis(a *routes, diagnosis Diagnosis) {
	examining := make(chan struct{}, 1)
	about := func(path, id, summary, description string) operation {
		return operation{
			method: http.MethodGet, path: path, id: id, tag: tagOps, access: adminOnly, role: access.RoleAdmin, unscoped: true,
			summary: summary, description: description,
		}
	}
	register(a, about("/v1/settings", "list-settings", "Show every effective setting and its source", "Of the node that answers. Secrets are masked, as `dibs config show` does."),
		func(context.Context, *call, *struct{}) (api.ListView[SettingView], error) {
			return api.ListView[SettingView]{Items: diagnosis.Settings()}, nil
		})
	register(a, about("/v1/doctor", "examine", "Examine everything that the server depends on",
		"Settings, machine, engine and ledger of the node that answers, as `dibs doctor` does. One examination runs at a time."),
		func(ctx context.Context, _ *call, _ *struct{}) (v api.ListView[DiagnosisView], err error) {
			ctx, cancel := context.WithTimeout(ctx, examineWithin)
			defer cancel()
			select {
			case examining <- struct{}{}:
				defer func() { <-examining }()
			case <-ctx.Done():
				return v, dibs.Unavail(dibs.EffectNone, ctx.Err())
			}
			v.Items = diagnosis.Examine(ctx)
			return v, nil
		})
}
