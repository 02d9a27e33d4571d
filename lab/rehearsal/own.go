package rehearsal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/dibs-dev/dibs/gate/overload"
	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/node"
)

// closing is how long an embedded server may take to finish what it was asked
// and to settle what it granted.
const closing = 30 * time.Second

// idleAtFirst is how long a connection of the load may wait for its first request.
const idleAtFirst = 2 * time.Minute

// own is an embedded server on loopback, made for one rehearsal.
// It is started and stopped by one goroutine. Fields are set in the order in which
// they are begun, so that stop ends as much as there is.
type own struct {
	url, adminKey string
	node          *node.Node
	hub           *gateway.Hub
	http          *http.Server
	served        chan error
	// temporary is the folder to remove in the end; empty when it is kept.
	temporary string
}

// theLoad is the point of a rehearsal, all of it at once: on a machine with little
// to spare, claims wait rather than be refused.
var theLoad = overload.Config{Target: time.Minute, Max: maxConcurrency, Min: maxConcurrency}

// startOwn starts a server on what the configuration names, or on a temporary
// folder. It accepts the development tokens: nobody but this process knows its
// address.
func startOwn(ctx context.Context, cfg *Config) (o *own, err error) {
	o = &own{adminKey: "dibs_" + rand.Text() + rand.Text(), served: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("starting an embedded server: %w", err), o.stop(ctx))
		}
	}()
	folder := cfg.Data
	if folder == "" {
		if folder, err = os.MkdirTemp("", "dibs-rehearsal-"); err != nil {
			return o, err
		}
		o.temporary = folder
	}
	if o.node, err = node.Open(ctx, node.Config{
		Engine: cfg.Engine, Dir: folder, Ledger: cfg.Ledger, Durability: cfg.Durability, Migrate: true, Overload: theLoad,
	}); err != nil {
		return o, err
	}
	if _, err = o.node.Service.Access.EnsureKey(ctx, "rehearsal", o.adminKey); err != nil {
		return o, err
	}
	if o.hub, err = gateway.Open(o.node, gateway.Config{
		// The load is the point here, and one user's may be all of it.
		MaxConnections: maxConcurrency + 1, MessageRate: maxRequests, MessageBurst: maxRequests,
		MaxInFlight: maxConcurrency, MaxQueued: maxConcurrency,
	}); err != nil {
		return o, err
	}
	handler, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(o.node.Service), AllowDevTokens: true, Gateway: o.hub})
	if err != nil {
		return o, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return o, err
	}
	o.url = "http://" + listener.Addr().String()
	o.http = httpapi.NewServer("", handler)
	// The load opens its connections long before it uses them.
	o.http.ReadHeaderTimeout = idleAtFirst
	go func() { o.served <- o.http.Serve(listener) }()
	return o, nil
}

// stop finishes what was asked, settles, and removes what is temporary. It does
// so even when ctx has ended.
// The order matters: connections end before the server, and the server before the
// node, so that no request finds a closed node.
func (o *own) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	var errs []error
	if o.hub != nil {
		o.hub.Close()
	}
	if o.http != nil {
		errs = append(errs, o.http.Shutdown(ctx))
		if err := <-o.served; !errors.Is(err, http.ErrServerClosed) {
			errs = append(errs, err)
		}
	}
	if o.node != nil {
		errs = append(errs, o.node.Close(ctx))
	}
	if o.temporary != "" {
		errs = append(errs, os.RemoveAll(o.temporary))
	}
	return errors.Join(errs...)
}
