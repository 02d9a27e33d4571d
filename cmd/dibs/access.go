package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/internal/web"
	"github.com/dibs-dev/dibs/limit"
	"github.com/dibs-dev/dibs/tokens"
)

// accessRules are about who may call, and from where.
func accessRules(c *config) []settings.Fault {
	fs := append(append(secretRules(c), humanRules(c)...), listRules(c)...)
	if c.JWKSURL != "" {
		if err := tokens.CheckJWKS(c.JWKSURL); err != nil {
			fs = append(fs, c.fault("jwks_url", err.Error()))
		}
	}
	if c.AdminListen != "" {
		if problem := listenProblem(c.AdminListen); problem != "" {
			fs = append(fs, c.fault("admin_listen", problem))
		} else if c.AdminListen == c.Listen && !strings.HasSuffix(c.Listen, ":0") {
			fs = append(fs, c.fault("admin_listen", "must be another address than listen"))
		}
	}
	for key, networks := range map[string][]string{
		"trusted_proxies": c.TrustedProxies, "block_addresses": c.BlockAddresses, "allow_addresses": c.AllowAddresses,
	} {
		for _, network := range networks {
			if _, err := netip.ParsePrefix(network); err != nil {
				fs = append(fs, c.fault(key, fmt.Sprintf("%q must be a network such as 10.0.0.0/8; one address is 192.0.2.7/32", network)))
			}
		}
	}
	if len(c.BlockAddresses)+len(c.AllowAddresses) > 0 && c.BehindProxy && len(c.TrustedProxies) == 0 {
		fs = append(fs, c.fault("trusted_proxies", "is needed to tell addresses apart behind_proxy"))
	}
	for _, l := range c.limitSettings() {
		if *l.text == "" {
			continue
		}
		if _, err := dibs.ParseLimit(l.per, *l.text); err != nil {
			fs = append(fs, c.fault(l.key, err.Error()))
		}
	}
	if c.LimitAddress != "" && c.BehindProxy && len(c.TrustedProxies) == 0 {
		fs = append(fs, c.fault("limit_address", "with behind_proxy it needs trusted_proxies: everybody has the proxy's address otherwise"))
	}
	for _, origin := range c.CORSOrigins {
		if problem := web.CheckOrigin(origin); problem != "" {
			fs = append(fs, c.fault("cors_origins", fmt.Sprintf("%q %s", origin, problem)))
		}
	}
	return fs
}

// secretRules find fault with the file of secrets.
func secretRules(c *config) []settings.Fault {
	if c.JWTSecretFile == "" {
		return nil
	}
	if _, err := c.jwtSecrets(); err != nil {
		return []settings.Fault{c.fault("jwt_secret_file", err.Error())}
	}
	return nil
}

// humanRules find fault with the secret of the human check: one that is also good
// for users' tokens would let its server, and everybody who passes a voucher on as a
// token, claim for anybody.
func humanRules(c *config) []settings.Fault {
	if c.HumanSecret == "" {
		return nil
	}
	if n := len(c.HumanSecret); n < minJWTSecret {
		return []settings.Fault{c.fault("human_secret", fmt.Sprintf("must be at least %d bytes, this one has %d", minJWTSecret, n))}
	}
	// A file that cannot be read is secretRules' to tell.
	secrets, _ := c.jwtSecrets()
	for _, secret := range secrets {
		if string(secret) == c.HumanSecret {
			return []settings.Fault{c.fault("human_secret", "must be another secret than those of users' tokens (jwt_secret, jwt_secret_file)")}
		}
	}
	return nil
}

// jwtSecrets are the secrets of users' tokens; the first one signs.
func (c *config) jwtSecrets() ([][]byte, error) {
	var secrets [][]byte
	if c.JWTSecret != "" {
		secrets = append(secrets, []byte(c.JWTSecret))
	}
	if c.JWTSecretFile == "" {
		return secrets, nil
	}
	file, err := os.ReadFile(c.JWTSecretFile)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	found := false
	for i, line := range bytes.Split(file, []byte("\n")) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == '#':
			continue
		case len(line) < minJWTSecret:
			return nil, fmt.Errorf("line %d has %d bytes, a secret needs at least %d", i+1, len(line), minJWTSecret)
		}
		found = true
		secrets = append(secrets, line)
	}
	if !found {
		return nil, fmt.Errorf("has no secret in it")
	}
	return secrets, nil
}

// openTokens returns what verifies users' tokens; nil where none are signed.
func (c *config) openTokens(ctx context.Context, log *slog.Logger) (*tokens.Verifier, error) {
	secrets, err := c.jwtSecrets()
	if err != nil {
		return nil, fmt.Errorf("jwt_secret_file %w", err)
	}
	if len(secrets) == 0 && c.JWKSURL == "" {
		return nil, nil
	}
	return tokens.Open(ctx, tokens.Config{
		Secrets: secrets, JWKS: c.JWKSURL, Refresh: c.JWKSRefresh, Issuer: c.JWTIssuer, Audience: c.JWTAudience, Leeway: c.JWTLeeway, Logger: log,
	})
}

// prefixes are the networks of a setting, which was checked.
func prefixes(networks []string) []netip.Prefix {
	var list []netip.Prefix
	for _, network := range networks {
		if p, err := netip.ParsePrefix(network); err == nil {
			list = append(list, p.Masked())
		}
	}
	return list
}

// certificates is what HTTPS is served with, as the files have it.
type certificates struct {
	cert, key string
	current   atomic.Pointer[tls.Certificate]
}

// certificates loads the files of the settings; nil for plain HTTP.
func (c *config) certificates() (*certificates, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	cs := &certificates{cert: c.TLSCert, key: c.TLSKey}
	return cs, cs.load()
}

func (cs *certificates) load() error {
	pair, err := tls.LoadX509KeyPair(cs.cert, cs.key)
	if err != nil {
		return fmt.Errorf("tls_cert and tls_key: %w", err)
	}
	cs.current.Store(&pair)
	return nil
}

func (cs *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cs.current.Load(), nil },
	}
}

// withProfiles adds the profiles of the process to what administrators have.
// Whoever reaches their listener may see them: they show code, not data.
func withProfiles(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", func(w http.ResponseWriter, _ *http.Request) {
		// Command lines may hold secrets.
		w.WriteHeader(http.StatusNotFound)
	})
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// connectionsPerAddress is what a gateway takes: below 0 for no bound. Behind a
// proxy that is not trusted all have one address.
func (c *config) connectionsPerAddress() int {
	if c.ConnectionsPerAddress == 0 || c.BehindProxy && len(c.TrustedProxies) == 0 {
		return -1
	}
	return c.ConnectionsPerAddress
}

// limitSetting is a setting that is a limit.
type limitSetting struct {
	key, per string
	text     *string
}

func (c *config) limitSettings() []limitSetting {
	return []limitSetting{
		{"limit_user", "user", &c.LimitUser},
		{"limit_address", "address", &c.LimitAddress},
		{"limit_campaign", "campaign", &c.LimitCampaign},
		{"limit_server", "server", &c.LimitServer},
	}
}

// limits are the limits of the settings, which were checked.
func (c *config) limits() limit.Config {
	var specs [4]*dibs.LimitSpec
	for i, l := range c.limitSettings() {
		if spec, err := dibs.ParseLimit(l.per, *l.text); err == nil && *l.text != "" {
			specs[i] = spec
		}
	}
	// A file that cannot be read is listRules' to tell.
	lists, _ := c.lists()
	return limit.Config{
		User: specs[0], Address: specs[1], Campaign: specs[2], Server: specs[3], Entries: c.LimitEntries,
		Lists: lists,
	}
}
