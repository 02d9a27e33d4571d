// Package badnet puts a bad network between a client and a server of a test: one that is
// cut, slow or sliced. It is no part of internal/servers, which dibs lab starts servers
// with: so the program has no such proxy in it.
package badnet

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/dibs-dev/dibs/internal/servers"
)

// Proxy is a network between a client and a server that can be made bad.
//
// Its methods may be called from several goroutines. A toxic acts on connections that
// are open, too.
type Proxy struct{ p *toxiproxy.Proxy }

// Start starts a proxy before an address, on a free port. Stop ends it.
func Start(upstream string) (*Proxy, error) {
	// Toxics speak to everybody's logger.
	zerolog.SetGlobalLevel(zerolog.Disabled)
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(api, upstream, "127.0.0.1:0", upstream)
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("badnet: a proxy before %s: %w", upstream, err)
	}
	return &Proxy{p: p}, nil
}

// Addr is where the proxy listens, host:port.
func (p *Proxy) Addr() string { return p.p.Listen }

// Poison adds a toxic of toxiproxy: its kind (`latency`, `reset_peer`, …), the
// stream (`upstream` or `downstream`), and its attributes.
func (p *Proxy) Poison(name, kind, stream string, attributes map[string]int64) error {
	toxic, err := json.Marshal(map[string]any{
		"name": name, "type": kind, "stream": stream, "toxicity": 1.0, "attributes": attributes,
	})
	if err == nil {
		_, err = p.p.Toxics.AddToxicJson(strings.NewReader(string(toxic)))
	}
	if err != nil {
		return fmt.Errorf("badnet: the toxic %s: %w", name, err)
	}
	return nil
}

// Heal takes all toxics away.
func (p *Proxy) Heal(ctx context.Context) { p.p.Toxics.ResetToxics(ctx) }

// Stop ends the proxy and its connections.
func (p *Proxy) Stop() { p.p.Stop() }

// Link is Start for a pair of servers that follow each other through the proxy.
func Link(upstream string) (servers.Link, error) {
	p, err := Start(upstream)
	if err != nil {
		return nil, err
	}
	return p, nil
}
