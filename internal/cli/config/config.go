package config

import (
	"time"

	"github.com/dibs-dev/dibs/internal/settings"
)

// Config is all that can be set, by flag, environment or file.
//
//nolint:lll // a tag cannot be broken
type Config struct {
	Listen        string        `key:"listen" default:"127.0.0.1:8080" arg:"HOST:PORT" doc:"The address to serve on. Port 0 takes a free one and says which."`
	Data          string        `key:"data" default:"dibs-data" arg:"DIR" doc:"The folder of the memory engine's journal and of the SQLite ledger. It is created when missing; with the memory engine one process at a time may use it. Without it, dev uses a temporary folder. A ledger in a server has that journal beside it and needs no folder."`
	Engine        string        `key:"engine" default:"memory" arg:"ENGINE" doc:"The engine that decides claims: memory, inside this one process, or Redis for as many nodes as there are: redis://USER:PASSWORD@HOST:6379/0, rediss:// for TLS. Sentinel: ?master_set=NAME, with the sentinels as HOST and further ?addr=HOST:PORT. Cluster: a second node as ?addr=HOST:PORT. Prefer the environment for passwords."`
	Ledger        string        `key:"ledger" shown:"sqlite:<data>/ledger.db" arg:"LEDGER" doc:"The database that keeps what was decided: sqlite:PATH, mysql://USER:PASSWORD@HOST:3306/DATABASE (MariaDB too; ?tls=true checks the server) or postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full (several servers as HOST1:5432,HOST2:5432: the one that is written to is used). Prefer the environment for passwords: command lines can be read by others on the machine."`
	LedgerTimeout time.Duration `key:"ledger_timeout" default:"5s" min:"500ms" max:"1m" arg:"TIME" doc:"How long a call of the ledger may take, after which it is answered as unavailable. A call that reads or writes many rows, to settle or verify say, may take longer while the database answers. docs/OPERATIONS.md has more."`
	Durability    string        `key:"durability" default:"durable" oneof:"none,relaxed,durable,replicated,ledgered" arg:"LEVEL" doc:"What a yes survives: none (nothing), relaxed (a crash of Redis), durable (a power cut), replicated (the loss of the Redis master, when a replica follows that had it), ledgered (the loss of the engine: the yes waits for the database). Redis must be set up for it, or serve refuses to start; the memory engine is durable or ledgered."`

	DurabilityLost string `key:"durability_lost" default:"refuse" oneof:"refuse,warn" arg:"RULE" doc:"What becomes of claims while Redis gives less than durability asks for, since a setting was changed or replicas are gone: refuse them as unavailable until it is put right, or grant them all the same and warn in /readyz, metrics and log. A server that starts is refused either way, and so is a Redis that evicts, which would have units sold twice. The memory engine always refuses."`

	AdminKey  string `key:"admin_key" secret:"true" shown:"none" arg:"KEY" doc:"An API key for admin calls, 16 to 255 visible characters. The server accepts it beside those of dibs key; verbs that speak to a server send it. Prefer the environment: command lines can be read by others on the machine."`
	JWTSecret string `key:"jwt_secret" secret:"true" shown:"none" arg:"SECRET" doc:"The secret of the users' tokens, JWTs signed by HS256. At least 32 bytes; prefer the environment."`

	HumanSecret   string        `key:"human_secret" secret:"true" shown:"none" arg:"SECRET" doc:"The secret that the server of a human check signs its vouchers with, JWTs by HS256, for tickets that ask for one. At least 32 bytes; prefer the environment."`
	JWTSecretFile string        `key:"jwt_secret_file" shown:"none" arg:"FILE" doc:"A file of more such secrets, one on each line, each of at least 32 bytes; lines that begin with # do not count. Every one is good for verifying, beside jwt_secret; dibs token signs by jwt_secret, or else by the first of them. The file is read again when it changes."`
	JWKSURL       string        `key:"jwks_url" shown:"none" arg:"URL" doc:"Where the public keys are of who signs the users' tokens (RS256, ES256), https://issuer.example/.well-known/jwks.json say. They are read again by themselves, and at once when a token names a new one."`
	JWKSRefresh   time.Duration `key:"jwks_refresh" default:"5m" min:"10s" max:"24h" arg:"TIME" doc:"How often the keys at jwks_url are read again: one that was taken out is good that long at most."`
	JWTIssuer     string        `key:"jwt_issuer" shown:"any" arg:"ISSUER" doc:"The iss that users' tokens must have."`
	JWTAudience   string        `key:"jwt_audience" shown:"any" arg:"AUDIENCE" doc:"The aud that users' tokens must have."`
	JWTLeeway     time.Duration `key:"jwt_leeway" default:"30s" min:"1s" max:"10m" arg:"TIME" doc:"How far the clock of who signs tokens may be off."`

	AdminListen    string   `key:"admin_listen" shown:"none" arg:"HOST:PORT" doc:"A second address for administrators, with everything, and profiles of the process under /debug/pprof. The first one then serves users alone: admin calls and /metrics are not there, and API keys are worth nothing."`
	TrustedProxies []string `key:"trusted_proxies" shown:"none" arg:"CIDR" doc:"The networks of proxies that say truly whom they speak for, such as 10.0.0.0/8; the flag may be repeated. Without them a client is where its connection comes from."`
	ProxyHeader    string   `key:"proxy_header" default:"X-Forwarded-For" oneof:"X-Forwarded-For,Forwarded" arg:"HEADER" doc:"The header by which those proxies say it. They must write it themselves, or add to it: a client can send it, too."`
	CORSOrigins    []string `key:"cors_origins" shown:"none" arg:"ORIGIN" doc:"The origins whose pages may call the API from browsers, such as https://shop.example; the flag may be repeated. * means every page there is."`

	LimitUser      string   `key:"limit_user" shown:"none" arg:"LIMIT" doc:"How often a user may claim, all campaigns together: 20/s, 100/1m,burst=300 (so many at once), or 1000/s,leaky,burst=200,wait=500ms (so many wait for their turn, so long at most). docs/GATE.md has more."`
	LimitAddress   string   `key:"limit_address" shown:"none" arg:"LIMIT" doc:"How often may be claimed from one address, or one /64 of IPv6: many people may share one."`
	LimitCampaign  string   `key:"limit_campaign" shown:"none" arg:"LIMIT" doc:"How often may be claimed on each campaign, by all nodes together; campaigns may have limits of their own besides."`
	LimitServer    string   `key:"limit_server" shown:"none" arg:"LIMIT" doc:"How often may be claimed at all, by all nodes together."`
	BlockAddresses []string `key:"block_addresses" shown:"none" arg:"CIDR" doc:"Networks from which nobody may claim, such as 203.0.113.0/24; the flag may be repeated."`
	AllowAddresses []string `key:"allow_addresses" shown:"none" arg:"CIDR" doc:"Networks for which no limit per address holds, an office's say."`
	BlockDevices   []string `key:"block_devices" shown:"none" arg:"DEVICE" doc:"Devices that may not claim, by what they call themselves in the header Dibs-Device."`
	AllowDevices   []string `key:"allow_devices" shown:"none" arg:"DEVICE" doc:"Devices for which no limit per device holds."`
	ListsFile      string   `key:"lists_file" shown:"none" arg:"FILE" doc:"A file of more of these, one on each line: block 203.0.113.0/24, allow 192.0.2.7, block device NAME; lines that begin with # are remarks; at most 100,000 lines, these among them. The file is read again when it changes."`
	LimitEntries   int      `key:"limit_entries" default:"1048576" min:"1024" max:"268435456" arg:"N" doc:"How many users, how many addresses, and how many devices are kept count of at a time, 16 bytes each. Beyond that, those with the least to wait are forgotten."`

	ConnectionsPerAddress int `key:"connections_per_address" default:"1000" min:"0" max:"1000000" arg:"N" doc:"How many WebSockets and event streams one address may have on a node, or one /64 of IPv6: many people may share one. 0 is no bound; there is none for this machine's own addresses, nor behind_proxy without trusted_proxies, where everybody has the proxy's."`

	TLSCert     string `key:"tls_cert" shown:"plain HTTP" arg:"FILE" doc:"The certificate chain to serve HTTPS with, as PEM. Needs tls_key. Both are read again when they change."`
	TLSKey      string `key:"tls_key" shown:"plain HTTP" arg:"FILE" doc:"The private key of tls_cert, as PEM."`
	BehindProxy bool   `key:"behind_proxy" default:"false" doc:"Serve plain HTTP on an address that is not loopback. Say so only when a proxy in front ends TLS and nobody else can reach the address."`

	OTLPEndpoint string `key:"otlp_endpoint" shown:"none" arg:"URL" doc:"The collector that traces go to, by OpenTelemetry's protocol over HTTP: http://collector:4318. The variables of OpenTelemetry count too: OTEL_EXPORTER_OTLP_ENDPOINT in place of this, OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and the rest."`
	TraceOneIn   int    `key:"trace_one_in" default:"1" min:"1" max:"1000000" arg:"N" doc:"Of how many traces one is kept. An administrator's call that comes with a traceparent is kept if that says so."`
	TraceClaims  bool   `key:"trace_claims" default:"false" doc:"Trace claims, too, over HTTP and WebSockets. Each then costs more; raise trace_one_in with it."`

	LogFormat string        `key:"log_format" default:"text" oneof:"text,json" arg:"FORMAT" doc:"How log lines look."`
	LogLevel  string        `key:"log_level" default:"info" oneof:"debug,info,warn,error" arg:"LEVEL" doc:"The least important log lines that are written."`
	Drain     time.Duration `key:"drain" default:"10s" min:"0s" max:"10m" arg:"TIME" doc:"How long a stop may take to finish requests and to settle. What is not settled then is settled at the next start."`
	Migrate   bool          `key:"migrate" default:"true" doc:"Bring the files of an older version up to date at start. Without it the server refuses them, and dibs migrate does it. New files are made in any case."`

	SettleBatch int           `key:"settle_batch" default:"16384" min:"1" max:"65536" arg:"N" doc:"How many journal entries are settled in one transaction at most."`
	SettleEvery time.Duration `key:"settle_every" default:"100ms" min:"1ms" max:"10s" arg:"TIME" doc:"How long entries wait for company while fewer than a batch are there."`
	JournalKeep time.Duration `key:"journal_keep" default:"1h" min:"1s" max:"720h" arg:"TIME" doc:"How long settled entries stay in the journal."`
	EraseRest   time.Duration `key:"erase_rest" default:"1m" min:"1s" max:"24h" arg:"TIME" doc:"How long the erasure of a user that has found nothing any more waits before it looks once more and is done. What was under way meanwhile is found then, on any node."`
	MaxBacklog  int64         `key:"max_backlog" default:"5000000" min:"1" max:"1000000000" arg:"N" doc:"How many entries of a campaign may wait to be settled before its claims are refused as overloaded."`

	OverloadTarget time.Duration `key:"overload_target" default:"500ms" min:"10ms" max:"1m" arg:"TIME" doc:"How long claims may wait for the engine. While they wait longer because too many are under way, fewer are let in at a time, and the rest is refused as overloaded at once. docs/OPERATIONS.md has more."`
	OverloadMax    int64         `key:"overload_max" default:"20000" min:"64" max:"1000000" arg:"N" doc:"How many claims may be with the engine at a time at most, on each node."`

	Events         []string `key:"events" shown:"none" arg:"SINK" doc:"Where events are published to, besides webhooks; the flag may be repeated, and in a file it is a list. kafka://HOST:9092/TOPIC, nats://HOST:4222/SUBJECT?stream=NAME, amqp://HOST:5672/VHOST?exchange=NAME, redis://HOST:6379/0?stream=NAME; docs/EVENTS.md has the options. Prefer the environment for passwords."`
	WebhookPrivate bool     `key:"webhook_allow_private" default:"false" doc:"Let webhooks be in private networks and on this machine, and be plain HTTP. Whoever may add webhooks can then reach what this server can."`

	PushThreshold int64 `key:"push_threshold" default:"10000" min:"1" max:"10000000" arg:"N" doc:"Up to how many followers all hear of a campaign at once that is announced; docs/PUSH.md has more. Each announcement may say otherwise, as with the two below."`
	PushFirst     int64 `key:"push_first" default:"1000" min:"1" max:"100000" arg:"N" doc:"How many hear at once when there are more, by rank; at most push_threshold."`
	PushRate      int64 `key:"push_rate" default:"1000" min:"1" max:"1000000" arg:"N" doc:"How many of the others hear each second."`

	URL string `key:"url" default:"http://127.0.0.1:8080" arg:"URL" doc:"The server that campaign and verify speak to."`

	// Values are the settings with their sources.
	Values settings.Values
}

// FileEnv names the settings file when --config does not.
const FileEnv = settings.Prefix + "CONFIG"

// The settings that verbs take as flags.
var (
	StoreKeys  = []string{"data", "engine", "ledger", "ledger_timeout", "durability"}
	LogKeys    = []string{"log_format", "log_level"}
	ServerKeys = []string{
		"listen", "data", "engine", "ledger", "ledger_timeout", "durability", "durability_lost", "admin_key", "jwt_secret", "human_secret", "tls_cert", "tls_key", "behind_proxy",
		"log_format", "log_level", "drain", "migrate", "settle_batch", "settle_every", "journal_keep", "erase_rest", "max_backlog",
		"overload_target", "overload_max", "events", "webhook_allow_private",
		"jwt_secret_file", "jwks_url", "jwks_refresh", "jwt_issuer", "jwt_audience", "jwt_leeway",
		"limit_user", "limit_address", "limit_campaign", "limit_server", "limit_entries", "connections_per_address", "block_addresses", "allow_addresses", "block_devices", "allow_devices", "lists_file",
		"admin_listen", "trusted_proxies", "proxy_header", "cors_origins",
		"push_threshold", "push_first", "push_rate",
		"otlp_endpoint", "trace_one_in", "trace_claims",
	}
	ClientKeys = []string{"url", "admin_key"}
)
