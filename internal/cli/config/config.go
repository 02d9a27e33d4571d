package config

import (
	"slices"
	"time"

	"github.com/dibs-dev/dibs/internal/logins"
	"github.com/dibs-dev/dibs/internal/settings"
)

// Config holds every setting, as flags, environment and file give it. The tags of
// its fields are the reference: Page prints them, and the flags' help shows the
// first sentence of each doc. Package settings describes the tags. Durations are time.Duration; min
// and max are part of the form and hold for all verbs, what depends on several settings is a Rule.
//
// Read fills a Config. Nothing changes it afterwards but SeparateAdmin and the verb that owns it,
// before it starts anything: goroutines of a server read it without a lock.
//
//nolint:lll // a tag cannot be broken
type Config struct {
	Listen        string        `key:"listen" default:"127.0.0.1:8080" arg:"HOST:PORT" doc:"The address to serve on. Port 0 takes a free port, and the log names it."`
	Data          string        `key:"data" default:"dibs-data" arg:"DIR" doc:"The folder of the memory engine's journal and of the SQLite ledger. dibs creates it when it is missing. With the memory engine one process at a time may use it. Without this setting, dev uses a temporary folder. With a ledger in a server the journal is there too, and no folder is needed."`
	Engine        []string      `key:"engine" default:"memory" arg:"ENGINE" doc:"The engine that decides claims: memory for a single process, or Redis for any number of nodes, as redis://USER:PASSWORD@HOST:6379/0 (rediss:// for TLS). With Sentinel: ?master_set=NAME, with the sentinels as HOST and further ?addr=HOST:PORT. With Cluster: a second node as ?addr=HOST:PORT. The flag may be repeated, and in a file it is a list: several such deployments divide the new campaigns among themselves (docs/OPERATIONS.md has more). Pass passwords by the environment, addresses apart by spaces: other users of the machine can read command lines."`
	Ledger        string        `key:"ledger" shown:"sqlite:<data>/ledger.db" arg:"LEDGER" doc:"The database that keeps every decision: sqlite:PATH, mysql://USER:PASSWORD@HOST:3306/DATABASE (MariaDB too; ?tls=true checks the server) or postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full (several servers as HOST1:5432,HOST2:5432: dibs uses the one that accepts writes). Pass passwords by the environment: other users of the machine can read command lines."`
	LedgerTimeout time.Duration `key:"ledger_timeout" default:"5s" min:"500ms" max:"1m" arg:"TIME" doc:"How long a call of the ledger may take before dibs answers unavailable. A call that reads or writes many rows, such as settling or verifying, may take longer while the database answers. docs/OPERATIONS.md has more."`
	LedgerKeyFile string        `key:"ledger_key_file" shown:"none" arg:"FILE" doc:"A file of keys that encrypt the secrets of webhooks in the ledger, and with encrypt_codes codes, one on each line: 64 hexadecimal digits. The first key encrypts, each decrypts; lines that begin with # are comments. Every node needs the same keys. dibs reads the file again when it changes; dibs ledger reencrypt brings old secrets under the first key."`
	EncryptCodes  bool          `key:"encrypt_codes" default:"false" doc:"Encrypt codes and seats of campaigns in the ledger too, under ledger_key_file: those that are stored from now on, and the others by dibs ledger reencrypt. Set it when every node runs a version that knows it, and on all of them. The engine has the codes as they are."`
	Durability    string        `key:"durability" default:"durable" oneof:"none,relaxed,durable,replicated,ledgered" arg:"LEVEL" doc:"What a granted claim survives: none (nothing), relaxed (a crash of Redis), durable (a power cut), replicated (the loss of the Redis master, when a replica that had the claim takes over), ledgered (the loss of the engine: the answer waits for the database). Redis must be configured for the level, or serve refuses to start. The memory engine is durable or ledgered."`

	DurabilityLost string `key:"durability_lost" default:"refuse" oneof:"refuse,warn" arg:"RULE" doc:"What happens to claims while Redis gives less than durability asks for, because its configuration changed or replicas are gone, or while a database whose commits claims wait for no longer keeps them: refuse answers them as unavailable until that is put right, warn grants them and warns in /readyz, metrics and log. With either rule serve refuses to start on such a server. It also refuses a Redis that evicts keys, which would sell units twice. The memory engine with its journal in a file always refuses."`

	AdminKey  string `key:"admin_key" secret:"true" shown:"none" arg:"KEY" doc:"An API key for admin calls, 16 to 255 visible characters. The server accepts it beside the keys of dibs key; verbs that call a server send it. Pass it by the environment, or as a file in DIBS_ADMIN_KEY_FILE, which a server reads again when it changes: it accepts the key in it beside the one before, until that is revoked. Other users of the machine can read command lines."`
	JWTSecret string `key:"jwt_secret" secret:"true" shown:"none" arg:"SECRET" doc:"The secret of the users' tokens, JWTs signed by HS256. It needs at least 32 bytes. Pass it by the environment."`

	HumanSecret   string        `key:"human_secret" secret:"true" shown:"none" arg:"SECRET" doc:"The secret of the vouchers that the server of a human check signs, JWTs by HS256, for tickets that ask for one. It needs at least 32 bytes. Several on lines of their own are good at the same time, while one takes the place of another. Pass it by the environment, or as a file in DIBS_HUMAN_SECRET_FILE, which dibs reads again when it changes."`
	JWTSecretFile string        `key:"jwt_secret_file" shown:"none" arg:"FILE" doc:"A file of more such secrets, one on each line, each of at least 32 bytes; lines that begin with # are comments. Each secret verifies tokens, beside jwt_secret. dibs token signs with jwt_secret, or else with the first of the file. dibs reads the file again when it changes."`
	JWKSURL       string        `key:"jwks_url" shown:"none" arg:"URL" doc:"Where the issuer of the users' tokens publishes its public keys (RS256, ES256), for example https://issuer.example/.well-known/jwks.json. dibs reads them again by itself, and at once when a token names an unknown key."`
	JWKSRefresh   time.Duration `key:"jwks_refresh" default:"5m" min:"10s" max:"24h" arg:"TIME" doc:"How often dibs reads the keys at jwks_url again. A key that the issuer withdraws is accepted for at most this long."`
	JWTIssuer     string        `key:"jwt_issuer" shown:"any" arg:"ISSUER" doc:"The iss that users' tokens must have."`
	JWTAudience   string        `key:"jwt_audience" shown:"any" arg:"AUDIENCE" doc:"The aud that users' tokens must have."`
	JWTLeeway     time.Duration `key:"jwt_leeway" default:"30s" min:"1s" max:"10m" arg:"TIME" doc:"How far the clock of the tokens' issuer may differ."`

	AdminListen    string   `key:"admin_listen" shown:"127.0.0.1:8081 where others reach listen, or a proxy does" arg:"HOST:PORT" doc:"A second address, for administrators. It serves everything, and profiles of the process under /debug/pprof. The first address then serves users only: it has neither admin calls nor /metrics, and accepts no API keys. dibs rehearse takes both, as --url and --admin-url."`
	AdminPublic    bool     `key:"admin_public" default:"false" doc:"Serve administrators and /metrics on listen too, although other machines can reach it, or a proxy with behind_proxy. Without it serve gives administrators an address of their own there."`
	TrustedProxies []string `key:"trusted_proxies" shown:"none" arg:"CIDR" doc:"The networks of proxies whose word on the client's address dibs trusts, such as 10.0.0.0/8; the flag may be repeated. Without them the client's address is that of its connection."`
	ProxyHeader    string   `key:"proxy_header" default:"X-Forwarded-For" oneof:"X-Forwarded-For,Forwarded" arg:"HEADER" doc:"The header in which those proxies name the client. They must set it or add to it: clients can send it too."`
	CORSOrigins    []string `key:"cors_origins" shown:"none" arg:"ORIGIN" doc:"The origins whose pages may call the API from browsers, such as https://shop.example; the flag may be repeated. * allows every origin."`

	OIDCIssuer       string   `key:"oidc_issuer" shown:"none" arg:"URL" doc:"The OpenID provider at which administrators sign in to the console and by dibs login, such as https://login.example.com, exactly as its tokens have it in iss. API keys work beside it. docs/OPERATIONS.md has more."`
	OIDCClientID     string   `key:"oidc_client_id" shown:"none" arg:"ID" doc:"The name under which that provider knows dibs."`
	OIDCClientSecret string   `key:"oidc_client_secret" secret:"true" shown:"none" arg:"SECRET" doc:"The secret of that client; a public client has none. Pass it by the environment, or as a file in DIBS_OIDC_CLIENT_SECRET_FILE, which dibs reads again when it changes."`
	OIDCAddress      string   `key:"oidc_address" shown:"none" arg:"URL" doc:"Where browsers reach the console, such as https://admin.shop.example. The provider has to know this address with /console/oidc/callback as the one to which it sends browsers back."`
	OIDCScopes       []string `key:"oidc_scopes" default:"profile email" arg:"SCOPE" doc:"What dibs asks the provider for beside openid; the flag may be repeated. Some providers tell groups only with a scope of their own, often groups."`
	OIDCGroupsClaim  string   `key:"oidc_groups_claim" default:"groups" arg:"CLAIM" doc:"The claim that has a person's groups, in the provider's token or its userinfo."`
	OIDCRoles        []string `key:"oidc_roles" shown:"none" arg:"GROUP=ROLE" doc:"The role of a group: viewer, editor, publisher or admin; the flag may be repeated. A person of several groups has the highest role, a person of none is refused."`

	Approve []string `key:"approve" shown:"none" arg:"ACT" doc:"The acts of administrators that a second one has to approve, with another key of another name and another origin: deposits, red-packets (publishing one), refunds, erasure (of a user), public-value (of a lottery), abandon-shard (of a campaign); the flag may be repeated. refunds=100.00CNY lets one person refund up to that of a claim. docs/OPERATIONS.md has more."`

	Storefront      bool     `key:"storefront" default:"false" doc:"Show what is on offer at /, for people. dev always does; without it / leads to the console and the docs."`
	AllowRehearsals bool     `key:"allow_rehearsals" default:"false" doc:"Let administrators simulate a rush on this server, from the console or by POST /v1/rehearsals: the load takes what the machine has. dev always does."`
	ImageOrigins    []string `key:"image_origins" shown:"none" arg:"ORIGIN" doc:"The origins from which pages show pictures of products, such as https://images.example; the flag may be repeated. Pictures of other origins are not loaded."`

	LimitUser      string   `key:"limit_user" shown:"none" arg:"LIMIT" doc:"How often a user may claim, over all campaigns: 20/s, 100/1m,burst=300 (up to 300 at once), or 1000/s,leaky,burst=200,wait=500ms (up to 200 wait for their turn, each at most 500ms). docs/GATE.md has more."`
	LimitAddress   string   `key:"limit_address" shown:"none" arg:"LIMIT" doc:"How often one address may claim, or one /64 of IPv6. Many people may share an address."`
	LimitCampaign  string   `key:"limit_campaign" shown:"none" arg:"LIMIT" doc:"How often each campaign may be claimed from, on all nodes together. Campaigns may have limits of their own as well."`
	LimitCalls     string   `key:"limit_calls" default:"100/s,burst=1000" arg:"LIMIT" doc:"How often a user may call a node besides claims and orders: queues, lotteries, tickets, their claims and balance. The same holds for an address that calls without a token, where more than memory answers; none for no limit."`
	LimitServer    string   `key:"limit_server" shown:"none" arg:"LIMIT" doc:"How often claims may be made at all, on all nodes together."`
	BlockAddresses []string `key:"block_addresses" shown:"none" arg:"CIDR" doc:"Networks that may not claim, such as 203.0.113.0/24; the flag may be repeated."`
	AllowAddresses []string `key:"allow_addresses" shown:"none" arg:"CIDR" doc:"Networks without a limit per address, such as an office's; the flag may be repeated."`
	BlockDevices   []string `key:"block_devices" shown:"none" arg:"DEVICE" doc:"Devices that may not claim, by the name that they send in the header Dibs-Device; the flag may be repeated."`
	AllowDevices   []string `key:"allow_devices" shown:"none" arg:"DEVICE" doc:"Devices without a limit per device; the flag may be repeated."`
	ListsFile      string   `key:"lists_file" shown:"none" arg:"FILE" doc:"A file of more such entries, one on each line: block 203.0.113.0/24, allow 192.0.2.7, block device NAME; lines that begin with # are comments; at most 100,000 lines, comments included. dibs reads the file again when it changes."`
	OrderUnits     int64    `key:"order_units" default:"100" min:"0" max:"10000000" arg:"N" doc:"How many units of a product one user may hold by regular orders that are not paid, or where the product sets no time to pay, by all that are not given back; 0 for any number."`
	LimitEntries   int      `key:"limit_entries" default:"1048576" min:"1024" max:"268435456" arg:"N" doc:"How many users, how many addresses and how many devices the limits count at a time, 16 bytes each. Beyond that they forget those that have the least to wait."`

	ConnectionsPerAddress int `key:"connections_per_address" default:"1000" min:"0" max:"1000000" arg:"N" doc:"How many WebSockets and event streams one address may open on a node, or one /64 of IPv6; 0 for any number. A /48 may open eight times as many. Of all connections to listen, plain calls among them, an address may have four times as many open, and as many requests under way over HTTP/2; further ones are closed, or refused. Many people may share an address. The limits do not apply to addresses of this machine, nor with behind_proxy and no trusted_proxies, where every client has the proxy's address; and connections of trusted_proxies are not counted as open ones of an address."`

	TLSCert       string `key:"tls_cert" shown:"plain HTTP" arg:"FILE" doc:"The certificate chain to serve HTTPS with, as PEM. It needs tls_key. dibs reads both files again when they change."`
	TLSKey        string `key:"tls_key" shown:"plain HTTP" arg:"FILE" doc:"The private key of tls_cert, as PEM."`
	AdminClientCA string `key:"admin_client_ca" shown:"none" arg:"FILE" doc:"The certificates of authorities, as PEM: admin_listen then takes only connections with a client certificate of one of them. Lists of revoked certificates (X509 CRL) may stand in the file too: what they name is refused. Calls need their API keys all the same. It needs tls_cert and admin_listen. dibs reads the file again when it changes."`
	BehindProxy   bool   `key:"behind_proxy" default:"false" doc:"Serve plain HTTP on an address that is not loopback. Set it only when a proxy in front ends TLS and nothing else can reach the address."`

	RequireTLS bool `key:"require_tls" default:"false" doc:"Refuse to start when Redis, the database, a sink of events or the collector of traces is reached over the network without TLS, or with TLS that takes any server for the right one, or can be turned off on the way, and when webhook_allow_private lets webhooks be plain HTTP. Without it doctor and the log warn."`

	OTLPEndpoint string `key:"otlp_endpoint" shown:"none" arg:"URL" doc:"The collector that traces go to, by OpenTelemetry's protocol over HTTP: http://collector:4318. dibs also reads OpenTelemetry's own variables: OTEL_EXPORTER_OTLP_ENDPOINT in place of this setting, OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and the others."`
	TraceOneIn   int    `key:"trace_one_in" default:"1" min:"1" max:"1000000" arg:"N" doc:"Keep one of so many traces. When an administrator's call has a traceparent, that decides for its trace."`
	TraceClaims  bool   `key:"trace_claims" default:"false" doc:"Trace claims too, over HTTP and WebSockets. Each claim then costs more: raise trace_one_in as well."`

	LogFormat string        `key:"log_format" default:"text" oneof:"text,json" arg:"FORMAT" doc:"The form of log lines."`
	LogLevel  string        `key:"log_level" default:"info" oneof:"debug,info,warn,error" arg:"LEVEL" doc:"The least important log lines to write."`
	Drain     time.Duration `key:"drain" default:"10s" min:"0s" max:"10m" arg:"TIME" doc:"How long a stop may take to finish requests and to settle. The next start settles the rest."`
	Migrate   bool          `key:"migrate" default:"true" doc:"Bring the files of an older version up to date at start. Without it the server refuses older files until dibs migrate has run. dibs makes new files in any case."`

	SettleBatch int           `key:"settle_batch" default:"16384" min:"1" max:"65536" arg:"N" doc:"How many journal entries one transaction settles at most."`
	SettleEvery time.Duration `key:"settle_every" default:"100ms" min:"1ms" max:"10s" arg:"TIME" doc:"How long entries wait for others while a batch is not full."`
	JournalKeep time.Duration `key:"journal_keep" default:"1h" min:"1s" max:"720h" arg:"TIME" doc:"How long settled entries stay in the journal."`
	EraseRest   time.Duration `key:"erase_rest" default:"1m" min:"1s" max:"24h" arg:"TIME" doc:"How long the erasure of a user waits after it has found nothing more, before it looks once more and is done. The second look finds what other nodes were writing at the time."`
	ConsoleIdle time.Duration `key:"console_idle" default:"30m" min:"5m" max:"12h" arg:"TIME" doc:"After how long without a use a session of the console ends, whatever is left of its twelve hours. An open page that shows live numbers uses it."`
	MaxBacklog  int64         `key:"max_backlog" default:"5000000" min:"1" max:"1000000000" arg:"N" doc:"How many entries of a campaign may wait to be settled before the server refuses its claims as overloaded."`

	ShardWait time.Duration `key:"shard_wait" default:"300ms" min:"1ms" max:"5s" arg:"TIME" doc:"How long a claim waits at a shard that has too little left while other shards of its campaign have some; docs/SHARDS.md has more."`

	OverloadTarget time.Duration `key:"overload_target" default:"500ms" min:"10ms" max:"1m" arg:"TIME" doc:"How long claims may wait for the engine. While they wait longer because too many are under way, the server lets fewer in at a time and refuses the others at once as overloaded. docs/OPERATIONS.md has more."`
	OverloadMax    int64         `key:"overload_max" default:"20000" min:"64" max:"1000000" arg:"N" doc:"How many claims each node may have with the engine at a time."`

	Events         []string `key:"events" shown:"none" arg:"SINK" doc:"Where to publish events, besides webhooks; the flag may be repeated, and in a file it is a list. kafka://HOST:9092/TOPIC, nats://HOST:4222/SUBJECT?stream=NAME, amqp://HOST:5672/VHOST?exchange=NAME, redis://HOST:6379/0?stream=NAME; docs/EVENTS.md has the options. Pass passwords by the environment."`
	WebhookPrivate bool     `key:"webhook_allow_private" default:"false" doc:"Allow webhooks on this machine, in private networks and over plain HTTP. Every administrator that may add webhooks can then make this server call addresses that only it can reach."`

	PushThreshold int64 `key:"push_threshold" default:"10000" min:"1" max:"10000000" arg:"N" doc:"How many followers an announced campaign may have for all of them to be told at once; docs/PUSH.md has more. Each announcement may set its own value, as for the next two settings."`
	PushFirst     int64 `key:"push_first" default:"1000" min:"1" max:"100000" arg:"N" doc:"How many followers are told at once when there are more than that, those of the highest rank; at most push_threshold."`
	PushRate      int64 `key:"push_rate" default:"1000" min:"1" max:"1000000" arg:"N" doc:"How many of the other followers are told each second."`

	URL string `key:"url" default:"http://127.0.0.1:8080" arg:"URL" doc:"The server to call, for verbs such as campaign and verify."`

	ClientCert string `key:"client_cert" shown:"none" arg:"FILE" doc:"The client certificate that verbs show to a server with admin_client_ca, as PEM. It needs client_key."`
	ClientKey  string `key:"client_key" shown:"none" arg:"FILE" doc:"The private key of client_cert, as PEM."`
	ServerCA   string `key:"server_ca" shown:"those of the system" arg:"FILE" doc:"The certificates of the authorities that verbs believe about the server at url, as PEM."`

	// Values are the settings as text, with their sources.
	Values settings.Values
	// Logins are the users and passwords of addresses that have changed since; ReadLogins
	// fills it.
	Logins *logins.Book
}

// FileEnv is the variable that names the settings file when --config does not.
const FileEnv = settings.Prefix + "CONFIG"

// The settings that verbs take as flags. A verb reads all settings from environment and file; flags
// are only those that it uses.
var (
	StoreKeys  = []string{"data", "engine", "ledger", "ledger_timeout", "ledger_key_file", "encrypt_codes", "durability"}
	LogKeys    = []string{"log_format", "log_level"}
	ClientKeys = []string{"url", "admin_key", "client_cert", "client_key", "server_ca"}
	ServerKeys = serverKeys()
)

// CallKeys are the settings of verbs that call a server, which a server does not have.
var CallKeys = []string{"url", "client_cert", "client_key", "server_ca"}

// serverKeys returns every setting that a server has: all but those of its callers.
func serverKeys() []string {
	var keys []string
	for _, s := range settings.Describe(&Config{}) {
		if !slices.Contains(CallKeys, s.Key) {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

// Page returns the reference of all settings as Markdown.
func Page() string {
	return "# Settings\n\nFlags win over the environment, the environment over the file (`--config dibs.yaml` or `" + FileEnv +
		"`),\nand the file over the defaults. `dibs config show` prints each value with its source, `dibs config check` every fault.\n\n" +
		"A variable that ends in `_FILE` names a file that holds the value, as orchestrators mount secrets:\n`DIBS_ADMIN_KEY_FILE=/run/secrets/key`. The variable without the ending wins over it.\n\n" +
		settings.Markdown(&Config{})
}
