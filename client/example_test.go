package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
)

// A claim is sent with a key, so that it can be repeated when its answer gets
// lost: here the first answer says that nobody knows.
func Example() {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"reason":"unavailable","effect":"unknown"}`)
			return
		}
		w.Header().Set("Idempotent-Replayed", "true")
		fmt.Fprint(w, `{"id":"7K3M9QX2B4TD6RWA","status":"pending"}`)
	}))
	defer server.Close()

	c, err := client.New(server.URL, client.Options{Token: "dev_42"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.CloseIdle()
	for range 3 {
		claim, replayed, err := c.Claim(context.Background(), "phone-noon", 1, "press-1")
		if errors.Is(err, dibs.ErrUnavailable) {
			fmt.Println("not answered: again, with the same key")
			continue
		}
		if err != nil {
			fmt.Println("refused:", err)
			return
		}
		fmt.Println("granted:", claim.ID, "had been granted before:", replayed)
		return
	}
	// Output:
	// not answered: again, with the same key
	// granted: 7K3M9QX2B4TD6RWA had been granted before: true
}
