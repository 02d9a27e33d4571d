package sinks

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dibs-dev/dibs/webhooks"
)

// maxAnswer is how much of an answer's body is read, only to use the
// connection again; maxAfter bounds what Retry-After may ask for.
const (
	maxAnswer = 16 << 10
	maxAfter  = time.Hour
)

// errPrivate: the endpoint is not in the public internet.
var errPrivate = errors.New(webhooks.PrivateAddress.EN)

// poster posts deliveries.
// It is safe for concurrent use: posters goroutines share its connections.
type poster struct {
	client *http.Client
	dialer *net.Dialer
}

// newPoster makes a poster that follows no redirects, uses no proxy, and
// refuses addresses of private networks when it connects: by then names are
// resolved, and nobody can resolve them otherwise once more.
func newPoster(cfg *WebhookConfig) *poster {
	dialer := &net.Dialer{Timeout: min(cfg.Timeout, 5*time.Second)}
	dial := dialer.DialContext
	if !cfg.AllowPrivate {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil || !webhooks.PublicAddr(ap.Addr()) {
				return errPrivate
			}
			return nil
		}
		dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			// A machine without IPv6 fails before it gets so far as to control.
			if ap, err := netip.ParseAddrPort(address); err == nil && !webhooks.PublicAddr(ap.Addr()) {
				return nil, errPrivate
			}
			return dialer.DialContext(ctx, network, address)
		}
	}
	return &poster{dialer: dialer, client: &http.Client{
		Timeout:       cfg.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dial, TLSHandshakeTimeout: min(cfg.Timeout, 5*time.Second), ForceAttemptHTTP2: true,
			MaxIdleConns: 64, MaxIdleConnsPerHost: posters, MaxConnsPerHost: 2 * posters, IdleConnTimeout: 30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
		},
	}}
}

func (p *poster) close() error {
	p.client.CloseIdleConnections()
	return nil
}

// answer is what became of an attempt.
type answer struct {
	status int
	// problem is empty when the event was taken.
	problem string
	// gone says that the endpoint wants no more.
	gone bool
	// after is how long the endpoint asks to be left alone.
	after time.Duration
}

// post makes one attempt.
func (p *poster) post(ctx context.Context, e *webhooks.WebhookEndpoint, d *webhooks.WebhookDelivery) answer {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(d.Body))
	if err != nil {
		return answer{problem: webhooks.BadAddress.EN}
	}
	now := time.Now()
	signature, err := Sign(d.EventID, now, d.Body, secretsOf(e, now)...)
	if err != nil {
		return answer{problem: webhooks.BadSecret.EN}
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("User-Agent", "dibs-webhooks/1")
	req.Header.Set("Webhook-Id", d.EventID)
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	req.Header.Set("Webhook-Signature", signature)
	resp, err := p.client.Do(req)
	if err != nil {
		return answer{problem: postProblem(err)}
	}
	_, readErr := io.CopyN(io.Discard, resp.Body, maxAnswer)
	closeErr := resp.Body.Close()
	a := answer{status: resp.StatusCode}
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		// The event was taken, whatever becomes of the rest of the answer.
		_, _ = readErr, closeErr
	case resp.StatusCode == http.StatusGone:
		a.gone, a.problem = true, "410 Gone"
	// A redirect could lead into a private network, and would take the signature
	// elsewhere.
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		a.problem = fmt.Sprintf(webhooks.NotFollowed.EN, strconv.Itoa(resp.StatusCode))
	default:
		a.problem = strings.TrimSpace(strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode))
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
			a.after = min(time.Duration(min(seconds, 1<<20))*time.Second, maxAfter)
		}
	}
	return a
}

// postProblem says in words why there was no answer, without the address,
// which may have a token in it.
func postProblem(err error) string {
	var timeout net.Error
	var dns *net.DNSError
	switch {
	case errors.Is(err, errPrivate):
		return errPrivate.Error()
	case errors.As(err, &dns):
		return webhooks.NoSuchHost.EN
	case errors.As(err, &timeout) && timeout.Timeout():
		return webhooks.NoAnswer.EN
	case errors.Is(err, syscall.ECONNREFUSED):
		return webhooks.NoConnection.EN
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

// secretsOf are the secrets that sign now.
// After a rotation the old secret signs too for a while, so that receivers can change
// theirs.
func secretsOf(e *webhooks.WebhookEndpoint, now time.Time) []string {
	if e.OldSecret != "" && now.Before(e.OldUntil) {
		return []string{e.Secret, e.OldSecret}
	}
	return []string{e.Secret}
}

// Sign makes the webhook-signature header of a message by the scheme of
// Standard Webhooks (standardwebhooks.com): a signature for each secret.
func Sign(id string, at time.Time, body []byte, secrets ...string) (string, error) {
	parts := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, webhooks.SecretPrefix))
		if err != nil {
			return "", fmt.Errorf("events: a webhook's secret: %w", err)
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%d.", id, at.Unix())
		mac.Write(body)
		parts = append(parts, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(parts, " "), nil
}
