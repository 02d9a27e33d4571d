// Command consumer credits points for every sale, as an example of the other
// side of dibs's events: it reads them from a stream, and from a webhook.
//
//	dibs serve … --events redis://127.0.0.1:6379
//	go run ./examples/consumer --from redis://127.0.0.1:6379
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/dibs-dev/dibs/consumer"

	"github.com/dibs-dev/dibs/events"
)

func main() {
	from := flag.String("from", "redis://127.0.0.1:6379", "where dibs publishes its events, as --events has it: redis://… or nats://…")
	listen := flag.String("listen", "", "take webhooks at this address too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *listen != "" {
		go serve(ctx, *listen, os.Getenv("WEBHOOK_SECRET"))
	}
	err := consumer.Run(ctx, consumer.Config{
		URL: *from, Group: "points", MaxAttempts: 5, Logger: slog.Default(),
		Handle: func(ctx context.Context, d *consumer.Delivery) consumer.Decision {
			if err := credit(ctx, &d.Event); err != nil {
				return consumer.ReconsumeLater(time.Duration(d.Attempt)*time.Second, err)
			}
			return consumer.Commit
		},
	})
	if !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// credit gives ten points for a sale that was paid. A real one stores the
// event's id in the transaction of the points, under a unique key, so that an
// event that comes twice counts once.
func credit(_ context.Context, e *events.Event) error {
	if e.Type != "dev.dibs.claim.confirmed" {
		return nil
	}
	var data events.ClaimEventData
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return err
	}
	fmt.Printf("10 points for %s, by event %s\n", data.Claim.UserID, e.ID)
	return nil
}

// serve takes webhooks.
func serve(ctx context.Context, address, secret string) {
	seen := consumer.NewSeen(10_000)
	handler := func(w http.ResponseWriter, r *http.Request) {
		e, err := consumer.Verify(r, time.Now(), secret)
		if err != nil {
			http.Error(w, "not signed by dibs", http.StatusUnauthorized)
			return
		}
		if seen.Before(e.ID) {
			return
		}
		if err := credit(r.Context(), e); err != nil {
			// dibs posts it again.
			seen.Forget(e.ID)
			http.Error(w, "later", http.StatusServiceUnavailable)
		}
	}
	server := &http.Server{Addr: address, Handler: http.HandlerFunc(handler), ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
	}
}
