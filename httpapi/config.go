package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/tokens"
)

// Service is what the handlers need of dibs. *dibs.Service is the one that
// exists; tests put one that fails in its place.
type Service interface {
	Claim(ctx context.Context, req dibs.ClaimRequest) (dibs.Result, error)
	FindClaim(ctx context.Context, id string) (*dibs.Claim, error)
	UserClaims(ctx context.Context, user string, page dibs.Page) (dibs.List[dibs.Claim], error)
	Orders(ctx context.Context, q dibs.OrderQuery, page dibs.Page) (dibs.List[dibs.Claim], error)
	CampaignClaims(ctx context.Context, campaignID string, f dibs.ClaimFilter, page dibs.Page) (dibs.List[dibs.Claim], error)
	Confirm(ctx context.Context, id string, p dibs.PaymentSpec) (*dibs.Claim, bool, error)
	Cancel(ctx context.Context, id, user, ref string) (*dibs.Claim, bool, error)
	Refund(ctx context.Context, id string, r dibs.RefundSpec, ref string) (*dibs.Claim, bool, error)
	Redeem(ctx context.Context, id string, r dibs.RedeemSpec) (*dibs.Claim, bool, error)
	Unredeem(ctx context.Context, id string, r dibs.UnredeemSpec) (*dibs.Claim, bool, error)
	Ship(ctx context.Context, id string, s dibs.ShipmentSpec) (*dibs.Claim, bool, error)

	Order(ctx context.Context, req dibs.OrderRequest) (dibs.Result, error)

	Deposit(ctx context.Context, user string, d dibs.DepositSpec) (*dibs.DepositView, bool, error)
	Balance(ctx context.Context, user string) (*dibs.BalanceView, error)
	Postings(ctx context.Context, user string, page dibs.Page) (dibs.List[dibs.PostingView], error)

	CreateProduct(ctx context.Context, spec dibs.ProductSpec) (*dibs.Product, error)
	PatchProduct(ctx context.Context, id string, patch dibs.ProductPatch) (*dibs.Product, error)
	Product(ctx context.Context, id string) (*dibs.Product, error)
	Products(ctx context.Context, page dibs.Page) (dibs.List[dibs.Product], error)

	CreateCampaign(ctx context.Context, spec dibs.CampaignSpec) (*dibs.Campaign, error)
	PatchCampaign(ctx context.Context, id string, patch dibs.CampaignPatch) (*dibs.Campaign, error)
	Publish(ctx context.Context, id string) (*dibs.Campaign, error)
	Pause(ctx context.Context, id string) (*dibs.Campaign, error)
	Resume(ctx context.Context, id string) (*dibs.Campaign, error)
	End(ctx context.Context, id string) (*dibs.Campaign, error)
	ChangeStock(ctx context.Context, id string, ch dibs.StockChange, ref string) (*dibs.Campaign, error)
	ImportCodes(ctx context.Context, id string, file io.ReadSeeker, ref string, done func(written int64)) (*dibs.Imported, error)
	UnclaimedCodes(ctx context.Context, id string, page dibs.Page) (dibs.List[dibs.CodeView], error)
	Campaign(ctx context.Context, id string) (*dibs.Campaign, error)
	CampaignNow(ctx context.Context, id string) (*dibs.Campaign, error)
	PublicCampaign(ctx context.Context, id string) (*dibs.Campaign, error)
	Campaigns(ctx context.Context, public bool, page dibs.Page) (dibs.List[dibs.Campaign], error)
	CampaignView(ctx context.Context, c *dibs.Campaign, admin bool) (dibs.CampaignView, error)
	Situation(ctx context.Context, id string) (dibs.Situation, error)
	CatalogVersion() int64
	Stats(ctx context.Context, id string) (dibs.StatsView, error)
	Verify(ctx context.Context, campaignIDs ...string) (*dibs.Report, error)
	Repair(ctx context.Context, req dibs.RepairRequest) (*dibs.RepairReport, error)

	TailEvents(ctx context.Context, after int64, max int) (events []dibs.Event, last int64, err error)
	Sinks(ctx context.Context) ([]dibs.SinkView, error)
	CreateEndpoint(ctx context.Context, spec dibs.EndpointSpec) (dibs.EndpointView, error)
	PatchEndpoint(ctx context.Context, id string, p dibs.EndpointPatch) (*dibs.WebhookEndpoint, error)
	RotateSecret(ctx context.Context, id string, r dibs.RotateSpec) (dibs.EndpointView, error)
	DeleteEndpoint(ctx context.Context, id string) error
	Endpoint(ctx context.Context, id string) (*dibs.WebhookEndpoint, error)
	Endpoints(ctx context.Context) ([]dibs.WebhookEndpoint, error)
	TestEndpoint(ctx context.Context, id string) (string, error)
	Deliveries(ctx context.Context, endpoint string, status dibs.DeliveryStatus, page dibs.Page) (dibs.List[dibs.WebhookDelivery], error)
	Redeliver(ctx context.Context, endpoint, event string) (int64, error)

	UserRecord(ctx context.Context, user string) (dibs.UserRecord, error)
	Erase(ctx context.Context, user string, spec dibs.ErasureSpec) (v dibs.ErasureView, known bool, err error)
	Erasure(ctx context.Context, id string) (dibs.ErasureView, error)
	Erasures(ctx context.Context, open bool, page dibs.Page) (dibs.List[dibs.Erasure], error)

	Announce(ctx context.Context, campaignID string, spec dibs.AnnouncementSpec) (*dibs.Announcement, error)
	Announcements(ctx context.Context, campaignID string, page dibs.Page) (dibs.List[dibs.Announcement], error)
	Announcement(ctx context.Context, id string) (dibs.AnnouncementView, error)
	PauseAnnouncement(ctx context.Context, id string) (*dibs.Announcement, error)
	ResumeAnnouncement(ctx context.Context, id string) (*dibs.Announcement, error)
	CancelAnnouncement(ctx context.Context, id string) (*dibs.Announcement, error)

	BeginAct(ctx context.Context, a *dibs.Act) error
	EndAct(ctx context.Context, a *dibs.Act)
	Acts(ctx context.Context, f dibs.ActFilter, page dibs.Page) (dibs.List[dibs.Act], error)

	CheckKey(ctx context.Context, secret string) (*dibs.APIKey, error)
	Remember(ctx context.Context, caller, key string, hash []byte, do func() (int, []byte, error)) (dibs.StoredRequest, bool, error)

	Health(ctx context.Context) dibs.HealthView
	Observe() dibs.Metrics
}

var _ Service = (*dibs.Service)(nil)

// Limits bound how often claims are made. It is asked by all claims at once.
type Limits interface {
	// Enter reports true when the claim may go on; else the Result is its refusal.
	// It may wait for the claim's turn. The Result's Quota is told in headers.
	Enter(ctx context.Context, req *dibs.ClaimRequest) (dibs.Result, bool)
}

// Overload knows when more claims are under way than are answered in time, as
// overload.Guard does. It is asked by all claims at once.
type Overload interface {
	// Full reports whether a claim would be refused; Refused counts one that was.
	Full() bool
	Refused()
	// View is how much there is to do.
	View() dibs.OverloadView
}

// Config configures the handler. Service is required, and at least one of
// Users, JWTSecret and AllowDevTokens; the zero value of any other field means
// the default named beside it.
type Config struct {
	Service Service
	// Users verifies user tokens, as tokens.Verifier does; default: HS256 tokens
	// under JWTSecret.
	Users Authenticator
	// JWTSecret is the HS256 secret of user tokens; at least 32 random bytes
	// are advised. Not used when Users is set.
	JWTSecret []byte
	// Places, Lotteries and Tickets are the waiting rooms, lotteries and tickets of
	// campaigns; nil answers as if no campaign had any.
	Places    dibs.Places
	Lotteries dibs.Lotteries
	Tickets   dibs.Tickets
	// AllowDevTokens accepts `dev_<user>` as a user token: for development only.
	AllowDevTokens bool
	// TrustedProxies are the networks of proxies that say truly whom they speak
	// for, by ProxyHeader: ForwardedFor, which is the default, or Forwarded. Without
	// them a client is where its connection comes from.
	TrustedProxies []netip.Prefix
	ProxyHeader    string
	// Origins are those whose pages may call the API from browsers, as CheckOrigin
	// takes them; default: none but its own.
	Origins []string
	// Limits bound claims before anything is asked of the service, as
	// limit.Limiter.Enter does; default: none.
	Limits Limits
	// Overload refuses claims before anything is read of them; it is the Guard of
	// the Service. Default: none does.
	Overload Overload
	// Audiences has lists of users and followers; without it there are no routes
	// for them.
	Audiences Audiences
	// Logger receives failures inside; default: nothing is logged.
	Logger *slog.Logger
	// MaxBody is the most bytes of a body, default 64 KiB; MaxAdminBody the most
	// of one that carries items, default 32 MiB.
	MaxBody      int64
	MaxAdminBody int64
	// Tracer shows where the time of administrators' calls goes, and with
	// TraceClaims that of claims; default: nobody looks.
	Tracer      Tracer
	TraceClaims bool
	// Version is the version that the API document names; default "dev".
	Version string
	// Registry receives the metrics; default: one of its own, with those of the
	// Go runtime and the process.
	Registry *prometheus.Registry
	// Collectors are what other parts of the node count, for the same registry.
	Collectors []prometheus.Collector
	// Gateway holds long-lived connections; nil for a server without them.
	Gateway Gateway
	// Now is the clock for tokens and GET /v1/time; default time.Now.
	Now func() time.Time
}

// WithDefaults returns the config with every zero field set.
func (c Config) WithDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.MaxBody == 0 {
		c.MaxBody = 64 << 10
	}
	if c.MaxAdminBody == 0 {
		c.MaxAdminBody = 32 << 20
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Registry == nil {
		c.Registry = newRegistry()
	}
	if c.ProxyHeader == "" {
		c.ProxyHeader = ForwardedFor
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Users == nil && len(c.JWTSecret) > 0 {
		c.Users = tokens.OfSecret(c.JWTSecret, c.Now)
	}
	return c
}

// Validate lists every fault of a config with defaults, naming the fields.
func (c Config) Validate() error {
	var fs []dibs.Fault
	must := func(ok bool, field, problem string) {
		if !ok {
			fs = append(fs, dibs.Fault{Field: field, Problem: dibs.Text{EN: problem}})
		}
	}
	must(c.Service != nil, "/Service", "is required")
	must(c.Users != nil || c.AllowDevTokens, "/JWTSecret", "is required, unless Users or AllowDevTokens is set")
	must(c.ProxyHeader == ForwardedFor || c.ProxyHeader == Forwarded, "/ProxyHeader", "must be X-Forwarded-For or Forwarded")
	for _, o := range c.Origins {
		problem := CheckOrigin(o)
		must(problem == "", "/Origins", problem)
	}
	must(c.MaxBody >= 1<<10, "/MaxBody", "must be at least 1024")
	must(c.MaxAdminBody >= c.MaxBody, "/MaxAdminBody", "must be at least MaxBody")
	if len(fs) > 0 {
		return dibs.Invalid(fs...)
	}
	return nil
}

// api is the handler's state, shared by all routes.
type api struct {
	cfg     Config
	svc     Service
	metrics *metrics
	lang    *languages
	users   *userTokens
	proxies proxies
	ids     requestIDs
	routes  *routes
	huma    huma.API
	schemas huma.Registry
	log     *slog.Logger
	// shelf has what everybody reads, and quick the handlers that answer from it,
	// by pattern.
	shelf *shelf
	quick map[string]quick
	// examples are bodies by operation, as they are written.
	examples map[string]string
}
