// Command go is a client of dibs in Go: it claims a pair of sneakers as user 42,
// pays it, and waits until a webhook tells that it was paid.
//
//	dibs dev --webhook-allow-private
//	export DIBS_URL=http://127.0.0.1:8080 DIBS_ADMIN_KEY=…
//	go run ./examples/go
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/consumer"
	"github.com/dibs-dev/dibs/webhooks"
)

// attempts is how often a claim without an answer is sent.
const attempts = 6

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Getenv("DIBS_URL"), os.Getenv("DIBS_ADMIN_KEY")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run makes a claim and follows it until it is paid.
func run(ctx context.Context, url, adminKey string) error {
	admin, err := client.New(url, client.Options{AdminKey: adminKey})
	if err != nil {
		return err
	}
	defer admin.CloseIdle()
	paid, err := listen(ctx, admin)
	if err != nil {
		return err
	}
	user := admin.WithToken("dev_42")
	press := uuid.NewString()
	mine, err := claim(ctx, user, "sneaker-drop", press)
	if err != nil {
		return err
	}
	fmt.Println("granted", mine.ID)
	var refusal *client.Error
	if _, err := claim(ctx, user, "ticket-tomorrow", uuid.NewString()); errors.As(err, &refusal) {
		fmt.Println("tickets:", refusal.Reason)
	}
	// A repeat with the same reference changes nothing.
	if _, _, err := admin.Orders.Confirm(ctx, mine.ID, dibs.PaymentSpec{Amount: mine.Amount, PaymentRef: "pay-" + press}); err != nil {
		return err
	}
	select {
	case id := <-paid:
		fmt.Println("paid", id)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// claim claims until there is an answer that is final. The key is made once for
// each press of the button and sent with every attempt: dibs then answers with
// the same claim, also when the answer got lost.
func claim(ctx context.Context, user *client.Client, campaign, key string) (mine api.ClaimView, err error) {
	for attempt := range attempts {
		if mine, _, err = user.Claim(ctx, campaign, 1, key); err == nil {
			return mine, nil
		}
		pause := 200 * time.Millisecond << attempt
		var refusal *client.Error
		switch {
		case !errors.As(err, &refusal):
			fmt.Println("no answer: again, with the same key")
		case !refusal.Retryable:
			return mine, err
		default:
			pause = max(pause, refusal.RetryAfter)
		}
		// A random part keeps many clients from coming back together.
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return mine, ctx.Err()
		}
	}
	return mine, err
}

// listen takes webhooks, and tells the claims that were paid.
func listen(ctx context.Context, admin *client.Client) (<-chan string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	endpoint, err := admin.Webhooks.Create(ctx, webhooks.EndpointSpec{URL: "http://" + listener.Addr().String() + "/hook"}, uuid.NewString())
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	// One more than this program reads: the handler never waits.
	paid := make(chan string, 1)
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		event, err := consumer.Verify(r, time.Now(), endpoint.Secret)
		if err != nil {
			http.Error(w, "not from dibs", http.StatusUnauthorized)
			return
		}
		if event.Type == "dev.dibs.claim.confirmed" {
			select {
			// Events may come twice: a real shop remembers event.ID.
			case paid <- event.Subject:
			default:
			}
		}
		w.WriteHeader(http.StatusNoContent)
	})}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return paid, nil
}
