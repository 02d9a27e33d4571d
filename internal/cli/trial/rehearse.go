package trial

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/lab/rehearsal"
)

// rehearseLong is the help of rehearse.
const rehearseLong = `Load a server as a rush does, then check every promise. Without --url it starts an
embedded server of its own, and loads it over HTTP on loopback.

It shows progress, then the outcomes, rates and latency percentiles, then each promise
with its verdict: by the answers that the clients received, and by the server's own
comparison of engine and ledger. Latency is measured from the moment at which a request
should have been sent.

A request without an answer may have been granted or not. rehearse counts it apart and
sends it again with the same idempotency key, which tells.

A server that is away for a while breaks no promise by that. After the load, rehearse
repeats for --patience every request that the server puts off (unavailable, overloaded,
rate_limited) or does not answer. A promise that is still open then could not be judged:
it is neither held nor broken.

It exits with 0 when every promise held, with 1 when one is broken or when it could not
run or was stopped, with 2 for a bad command line, and with 3 when nothing is broken and
a promise could not be judged.`

// newRehearseCommand returns the verb that proves the promises under load. Its exit codes are in
// rehearseLong, and a script may rely on them: 3 is no failure of dibs.
func newRehearseCommand() *cobra.Command {
	cfg := rehearsal.Config{Scenario: rehearsal.ManyUsers, Kind: dibs.Sale, Through: rehearsal.HTTP}
	var keys bool
	cmd := cli.WithOutput(&cobra.Command{
		Use:   "rehearse",
		Short: "Load a server as a rush does, then check every promise; exit 1 when one is broken, 3 when one could not be judged",
		Long:  rehearseLong,
		Example: `  dibs rehearse                                  # 200 units, 2,000 users, 5,000 requests at once
  dibs rehearse --scenario one-user              # 10,000 requests at once of one user: one is granted
  dibs rehearse --rate 3000 --duration 20s --users 50000 --stock 10000
  dibs rehearse --through ws                     # the same over 2,000 WebSockets
  dibs rehearse --kind redpacket --stock 10000 --users 12000 --requests 15000
  dibs rehearse --url http://127.0.0.1:8080 --admin-key "$DIBS_ADMIN_KEY"
  dibs rehearse --url https://shop.example --admin-url http://127.0.0.1:8081 --admin-key "$DIBS_ADMIN_KEY"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := chooseServer(cmd, &cfg); err != nil {
				return err
			}
			// The zero value of the configuration sends keys.
			cfg.NoKeys = !keys
			keepZeros(cmd, &cfg)
			cfg.Progress, cfg.Terminal = cmd.ErrOrStderr(), cli.IsTerminal(cmd.ErrOrStderr())
			return rehearse(cmd, cfg)
		},
	})
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(cli.OneOf(&cfg.Scenario, rehearsal.ManyUsers, rehearsal.OneUser), "scenario", "The `SCENARIO`, many-users or one-user; it sets the defaults below")
	f.Var(cli.OneOf(&cfg.Kind, dibs.Sale, dibs.Coupon, dibs.RedPacket), "kind", "The `KIND` of campaign: sale; coupon, with a code for each unit; or redpacket, whose money is counted at its end")
	f.Var(cli.OneOf(&cfg.Through, rehearsal.HTTP, rehearsal.WebSocket), "through", "The `WAY` that requests are sent: http, or ws, over a WebSocket of each user")
	f.IntVar(&cfg.Users, "users", 0, "How many users send requests (default 2000, or 1)")
	f.IntVar(&cfg.Requests, "requests", 0, "How many requests they send (default 5000, or 10000)")
	f.IntVar(&cfg.Concurrency, "concurrency", 0, "How many requests are under way at once (default all; 1000 with --rate)")
	f.Float64Var(&cfg.Rate, "rate", 0, "Requests that arrive a second; 0 sends waves, each all at once")
	f.DurationVar(&cfg.Duration, "duration", 0, "How long requests arrive, with --rate, instead of --requests")
	f.Int64Var(&cfg.Stock, "stock", 0, "Units of the campaign, codes of the coupon, or shares of the red packet (default 200)")
	f.Int64Var(&cfg.Limit, "limit", 0, "Units that one user may hold (default 1)")
	f.IntVar(&cfg.Shards, "shards", 0, "Parts of the stock, for as many cores of Redis (default 1)")
	f.Int64Var(&cfg.Quantity, "quantity", 1, "Units that one request asks for")
	f.BoolVar(&keys, "keys", true, "Send each request with an idempotency key of its own")
	f.Float64Var(&cfg.Repeats, "repeats", 0.1, "The share of the requests that repeat another one with its key")
	f.StringVar(&cfg.Campaign, "campaign", "", "Load this published campaign, instead of a new one that is ended afterwards")
	f.Uint64Var(&cfg.Seed, "seed", 0, "The order of the requests; 0 takes a random one and shows it")
	f.DurationVar(&cfg.Patience, "patience", time.Minute, "How long, after the load, to repeat what the server puts off")
	f.DurationVar(&cfg.Timeout, "timeout", 30*time.Second, "The longest time for a request")
	f.StringVar(&cfg.AdminURL, "admin-url", "", "Where that server takes admin calls (default --url)")
	f.DurationVar(&cfg.MaxTime, "max-time", 0, "The longest time for the whole rehearsal (default 5m and the duration)")
	config.AddFlags(cmd, []string{"url"}, config.StoreKeys, []string{"admin_key", "jwt_secret"})
	// These flags are settings of a server; here they shape the embedded one.
	describe(cmd, "url", "Load the running server there, instead of an embedded one")
	describe(cmd, "data", "Keep the embedded server's files in this folder, instead of a temporary one")
	describe(cmd, "engine", "Let the embedded server decide on this engine, instead of memory; Redis needs --ledger or --data")
	describe(cmd, "ledger", "Let the embedded server keep its ledger there")
	describe(cmd, "durability", "What the embedded server's granted claims survive (default durable)")
	describe(cmd, "jwt-secret", "Sign the users' tokens with the server's secret; without it they are those of dibs dev")
	return cmd
}

// describe gives the flag of a setting the meaning that it has for this verb, whose default is to
// leave it out: the help must not show the default that the setting has elsewhere.
func describe(cmd *cobra.Command, flag, usage string) {
	f := cmd.Flags().Lookup(flag)
	f.Usage, f.DefValue = usage, ""
}

// keepZeros makes a zero that the user gave differ from the zero that stands for a
// default: -1, which the rehearsal refuses, or takes for none in the case of repeats.
func keepZeros(cmd *cobra.Command, cfg *rehearsal.Config) {
	given := cmd.Flags().Changed
	switch {
	// A repeat is recognised by its key: without keys it would be a second claim.
	case !given("repeats") && cfg.NoKeys:
		cfg.Repeats = 0
	case given("repeats") && cfg.Repeats == 0:
		cfg.Repeats = -1
	}
	negate(cmd, map[string]*int{"users": &cfg.Users, "requests": &cfg.Requests, "concurrency": &cfg.Concurrency, "shards": &cfg.Shards}, -1)
	negate(cmd, map[string]*int64{"stock": &cfg.Stock, "limit": &cfg.Limit, "quantity": &cfg.Quantity}, -1)
	negate(cmd, map[string]*time.Duration{"patience": &cfg.Patience, "timeout": &cfg.Timeout, "max-time": &cfg.MaxTime}, -1)
}

// negate replaces the zeros of flags that were given by a value that Validate refuses, or reads as none.
func negate[T int | int64 | time.Duration](cmd *cobra.Command, flags map[string]*T, by T) {
	for flag, value := range flags {
		if cmd.Flags().Changed(flag) && *value == 0 {
			*value = by
		}
	}
}

// chooseServer settles which server is loaded. Only a flag may name a running one: an
// environment that is there for other verbs must not send a rush to a server in use.
func chooseServer(cmd *cobra.Command, cfg *rehearsal.Config) error {
	c, err := config.Load(cmd)
	if err != nil {
		return err
	}
	// Not Given: the environment may name a server in use.
	if c.ByFlag("url") {
		cfg.URL = c.URL
	}
	for key, field := range map[string]*string{"data": &cfg.Data, "engine": &cfg.Engine, "ledger": &cfg.Ledger, "durability": &cfg.Durability} {
		if c.ByFlag(key) {
			*field = c.Values.Of(key).Text
		}
	}
	// Only the form is judged here; the embedded server says whether it can open them.
	if err := cli.Faults(cannotRehearse, storeFaults(cfg.Engine, cfg.Ledger)); err != nil {
		return err
	}
	// The environment's key is for a server that was named, not for the embedded one.
	if cfg.URL != "" || c.ByFlag("admin_key") {
		cfg.AdminKey = c.AdminKey
	}
	if cfg.URL != "" || c.ByFlag("jwt_secret") {
		cfg.JWTSecret = c.JWTSecret
	}
	return nil
}

// cannotRehearse heads the faults of the flags.
const cannotRehearse = "rehearse cannot run like this:"

// storeFaults are those of the addresses of an engine and a ledger. An empty address has none.
func storeFaults(engine, ledger string) (fs []settings.Fault) {
	if problem := config.EngineProblem(engine); engine != "" && problem != "" {
		fs = append(fs, settings.Fault{Key: "--engine", Problem: problem})
	}
	if problem := config.LedgerProblem(ledger); problem != "" {
		fs = append(fs, settings.Fault{Key: "--ledger", Problem: problem})
	}
	return fs
}

// rehearse runs and shows a rehearsal, and turns its verdict into the exit code: broken wins over not
// judged, and an interrupted rehearsal is a failure, since it did not check everything.
func rehearse(cmd *cobra.Command, cfg rehearsal.Config) error {
	// All faults at once, before a server is started or called.
	if err := faultsOf(cfg.Validate()); err != nil {
		return err
	}
	// nil when nothing was sent: there is nothing to report.
	r, err := rehearsal.Run(cmd.Context(), cfg)
	if r == nil {
		return err
	}
	// A rehearsal that was stopped has a report too.
	if err := errors.Join(err, cli.Show(cmd, r, cli.TableFunc(r.Table))); err != nil {
		return err
	}
	// Not OK may mean broken, not judged, or stopped: each has an exit code of its own meaning.
	broken := slices.ContainsFunc(r.Promises, func(v rehearsal.Verdict) bool { return v.Judgement == rehearsal.Broken })
	switch {
	case !r.OK && !r.Interrupted && !broken:
		return fmt.Errorf("the rehearsal %s did not pass: %w", r.Run, cli.ErrUnjudged)
	case !r.OK:
		return fmt.Errorf("the rehearsal %s did not pass", r.Run)
	}
	return nil
}

// faultsOf names the flags in the faults of a rehearsal; another error stays as it is.
func faultsOf(err error) error {
	var e *dibs.Error
	if !errors.As(err, &e) {
		return err
	}
	return cli.Faults(cannotRehearse, flagFaults(e))
}

// flagFaults names the flags in the faults of a configuration: a field /max-time is --max-time.
func flagFaults(e *dibs.Error) (faults []settings.Fault) {
	for _, f := range e.Faults {
		faults = append(faults, settings.Fault{Key: "--" + strings.TrimPrefix(f.Field, "/"), Problem: f.Problem.EN})
	}
	return faults
}
