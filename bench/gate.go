package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/lestrrat-go/jwx/v3/jwk"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/limit"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/tokens"
)

// gateKind begins the names of the servers of this part: gate-off is the yardstick without a gate,
// gate-hs256 and gate-es256 have one.
const gateKind = "gate-"

// gateKey signs the tokens of this part by ES256. It is made from a text, so
// that both processes have it.
func gateKey() (*ecdsa.PrivateKey, error) {
	d := new(big.Int).SetBytes([]byte("a key of the benchmark, no secret"))
	d.Mod(d, elliptic.P256().Params().N)
	return ecdsa.ParseRawPrivateKey(elliptic.P256(), d.FillBytes(make([]byte, 32)))
}

// gateHandler serves a campaign that is sold out: for off open to every user, with development
// tokens that nobody signs; for the other kinds with signed tokens, limits of server and campaign,
// and a list of users. Sold out, because a refusal is the cheapest answer of the engine: what the
// gate adds stands out most against it. The ratio to a grant would be smaller.
func gateHandler(ctx context.Context, kind string) (*benchNode, http.Handler, error) {
	var cfg node.Config
	// A limit that no load of this part reaches: a claim that a limit refuses has another status,
	// and press would fail.
	many := &dibs.LimitSpec{Rate: 1_000_000, Every: dibs.Duration(time.Second)}
	if kind != "off" {
		cfg.Limits = limit.Config{User: many, Address: many}
	}
	n, err := openNode(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	if err := n.soldOut(ctx, "refused", 1, 1); err != nil {
		return n, nil, err
	}
	// The server without a gate accepts development tokens, and the others refuse them: a handler
	// that accepts both would check a token in two ways.
	hc := httpapi.Config{Services: httpapi.ServicesOf(n.Service), AllowDevTokens: kind == "off", Audiences: n.Audiences}
	if kind != "off" {
		hc.Limits = n.Limits
		if err := shut(ctx, n, many); err != nil {
			return n, nil, err
		}
		if hc.Users, err = verifierOf(ctx, kind); err != nil {
			return n, nil, err
		}
	}
	h, err := httpapi.New(hc)
	return n, h, err
}

// shut puts a gate before the campaign: a limit per user, a limit per address and a list of
// exactly the users who claim. All claims pass it, so that they reach the engine and are refused
// there, as without a gate.
func shut(ctx context.Context, n *benchNode, many *dibs.LimitSpec) error {
	users, write := io.Pipe()
	go func() {
		for i := range pressers {
			fmt.Fprintln(write, gateUser(i))
		}
		_ = write.Close()
	}()
	if _, err := n.Audiences.Import(ctx, "vip", users, nil); err != nil {
		return err
	}
	gate := dibs.GateSpec{Audience: &dibs.AudienceSpec{List: "vip"}}
	for _, per := range []string{"user", "address"} {
		l := *many
		l.Per = per
		gate.Limits = append(gate.Limits, l)
	}
	c, err := n.Service.Campaigns.Patch(ctx, "refused", dibs.CampaignPatch{Gate: &gate})
	if err != nil {
		return err
	}
	// The node loads the list after the change. Until then it refuses claims for another reason,
	// and press would fail.
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		if _, ok := n.Audiences.Pass(ctx, c, &dibs.ClaimRequest{UserID: gateUser(0)}); ok {
			return nil
		}
	}
}

// gateUser names the i-th user, in no order.
func gateUser(i int) string { return "g" + strconv.Itoa(scatter(i)) }

// verifierOf verifies tokens by HS256, or by ES256 with a JWKS that it serves in this process and
// that the verifier reads over HTTP. The issuer lives as long as the process.
func verifierOf(ctx context.Context, kind string) (*tokens.Verifier, error) {
	if kind == "hs256" {
		return tokens.Open(ctx, tokens.Config{Secrets: [][]byte{[]byte(secret)}})
	}
	key, err := gateKey()
	if err != nil {
		return nil, err
	}
	public, err := jwk.Import(key.Public())
	if err != nil {
		return nil, err
	}
	set := jwk.NewSet()
	if err := set.AddKey(public); err != nil {
		return nil, err
	}
	body, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	return tokens.Open(ctx, tokens.Config{JWKS: issuer.URL})
}

// gateTokens are the tokens of a kind of server, one for each claim. Only the first pressers differ:
// the others are the same users again, as when a crowd presses again, so that a server which
// remembers verified tokens checks most of them once.
func gateTokens(kind string, claims int) ([]string, error) {
	list := make([]string, claims)
	key, err := gateKey()
	if err != nil {
		return nil, err
	}
	for i := range list {
		switch {
		case i >= pressers:
			list[i] = list[i%pressers]
		case kind == "off":
			list[i] = "dev_" + gateUser(i)
		case kind == "hs256":
			list[i], err = httpapi.IssueToken([]byte(secret), gateUser(i), time.Hour)
		default:
			list[i], err = jwt.NewWithClaims(jwt.SigningMethodES256, jwt.RegisteredClaims{
				Subject: gateUser(i), ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour)),
			}).SignedString(key)
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// gatePart measures what stands before the engine, as CPU of the server per refused claim. The
// yardstick is the same server without tokens to check, limits and a list. The servers answer in
// turns (cpuInTurns), because the difference is smaller than what the machine's speed changes.
func gatePart(ctx context.Context, o *options) error {
	const claims = 60_000
	kinds := []string{"off", "hs256", "es256"}
	cost, lists := map[string][]float64{}, map[string][]string{}
	var servers []string
	for _, kind := range kinds {
		list, err := gateTokens(kind, claims)
		if err != nil {
			return err
		}
		// Each kind has tokens of its own form, of the same users.
		lists[gateKind+kind], servers = list, append(servers, gateKind+kind)
	}
	for range o.rounds {
		per, err := cpuInTurns(ctx, servers, "refused", lists, 409)
		if err != nil {
			return err
		}
		for _, kind := range kinds {
			cost[kind] = append(cost[kind], per[gateKind+kind])
		}
	}
	fmt.Printf("| server CPU per refused claim, %d users press again | | ratio |\n|---|---|---|\n", pressers)
	off := median(cost["off"])
	for _, row := range []struct{ kind, name string }{
		{"off", "users are who they say, no limits, open to all"},
		{"hs256", "tokens by HS256, limits per user and address of server and campaign, a list of users"},
		{"es256", "the same with tokens by ES256 and a JWKS"},
	} {
		at := median(cost[row.kind])
		fmt.Printf("| %s | %.1f µs | %.2f |\n", row.name, at, at/off)
	}
	return nil
}
