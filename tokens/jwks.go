package tokens

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwk"

	"github.com/dibs-dev/dibs/internal/wait"
)

const (
	// defaultRefresh is how often a JWKS is read again.
	defaultRefresh = 5 * time.Minute
	// unknownEvery is how often unknown keys may have it read: tokens with made-up
	// keys must not make dibs ask the issuer for each.
	unknownEvery = 10 * time.Second
	// fetchWithin bounds one reading of it, retryEvery how soon a failed one is
	// tried again.
	fetchWithin = 5 * time.Second
	retryEvery  = 5 * time.Second
	// maxJWKS bounds its size, maxKeys the keys in it.
	maxJWKS = 1 << 20
	maxKeys = 100
	// minRSA is the least size of an RSA key, in bits.
	minRSA = 2048
)

// keySet is the public keys of a JWKS, read in the background.
//
// known is replaced as a whole and never changed, so that tokens are verified without a
// lock; find waits for mu only for an id that is not known. A reading that fails leaves
// known as it is, and one that changes it raises epoch.
type keySet struct {
	url     string
	client  *http.Client
	log     *slog.Logger
	now     func() time.Time
	refresh time.Duration
	epoch   *atomic.Uint64
	// known are the keys by id; those without one are under "".
	known atomic.Pointer[map[string][]any]

	// mu is held while the set is read; readAt is when that was begun last.
	mu     sync.Mutex
	readAt time.Time

	life   context.Context
	cancel context.CancelFunc
	loop   sync.WaitGroup
}

func newKeySet(cfg *Config, epoch *atomic.Uint64) *keySet {
	s := &keySet{url: cfg.JWKS, client: cfg.Client, log: cfg.Logger, now: cfg.Now, refresh: cfg.Refresh, epoch: epoch}
	if s.refresh <= 0 {
		s.refresh = defaultRefresh
	}
	if s.client == nil {
		s.client = &http.Client{
			Timeout:       fetchWithin,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	s.known.Store(&map[string][]any{})
	s.life, s.cancel = context.WithCancel(context.Background())
	return s
}

// start reads the set and keeps reading it.
func (s *keySet) start(ctx context.Context) {
	err := s.read(ctx)
	s.loop.Go(func() {
		for wait.Sleep(s.life, s.pause(err)) {
			err = s.read(s.life)
		}
	})
}

// pause is how long to wait after the set was read, or could not be.
func (s *keySet) pause(err error) time.Duration {
	if err != nil {
		return min(s.refresh, retryEvery)
	}
	return s.refresh
}

// read reads the set. The known keys stay when it cannot be read.
func (s *keySet) read(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readLocked(ctx)
}

func (s *keySet) readLocked(ctx context.Context) error {
	s.readAt = s.now()
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	set, err := jwk.Fetch(ctx, s.url, jwk.WithHTTPClient(s.client), jwk.WithMaxFetchBodySize(maxJWKS))
	if err == nil && set.Len() > maxKeys {
		err = errors.New("it has more keys than anybody needs")
	}
	if err != nil {
		if s.life.Err() == nil {
			s.log.Warn("the keys of user tokens could not be read; those known stay", "url", s.url, "err", err)
		}
		return err
	}
	next := make(map[string][]any)
	for i := range set.Len() {
		k, _ := set.Key(i)
		if public := usable(k); public != nil {
			id, _ := k.KeyID()
			next[id] = append(next[id], public)
		}
	}
	if !reflect.DeepEqual(*s.known.Load(), next) {
		s.known.Store(&next)
		s.epoch.Add(1)
	}
	return nil
}

// usable returns a key that may verify tokens, nil for any other.
func usable(k jwk.Key) any {
	if use, ok := k.KeyUsage(); ok && use != "" && use != "sig" {
		return nil
	}
	alg := ""
	if a, ok := k.Algorithm(); ok {
		alg = a.String()
	}
	// Only public halves are taken: a secret in a JWKS verifies nothing.
	var raw any
	if err := jwk.Export(k, &raw); err != nil {
		return nil
	}
	switch key := raw.(type) {
	case *rsa.PublicKey:
		if (alg == "" || alg == "RS256") && key.N.BitLen() >= minRSA {
			return key
		}
	case *ecdsa.PublicKey:
		if (alg == "" || alg == "ES256") && key.Curve == elliptic.P256() {
			return key
		}
	}
	return nil
}

// find returns the keys of an id, all of them for a token that names none. An
// id that is not known has the set read once more.
func (s *keySet) find(kid string) []any {
	known := *s.known.Load()
	if kid == "" {
		var all []any
		for _, keys := range known {
			all = append(all, keys...)
		}
		return all
	}
	if keys := known[kid]; keys != nil {
		return keys
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Somebody else may have read it while this one waited.
	if keys := (*s.known.Load())[kid]; keys != nil || s.now().Sub(s.readAt) < unknownEvery || s.life.Err() != nil {
		return keys
	}
	if err := s.readLocked(s.life); err != nil {
		return nil
	}
	return (*s.known.Load())[kid]
}

func (s *keySet) close() {
	s.cancel()
	s.loop.Wait()
	s.client.CloseIdleConnections()
}

// isLoopback reports whether only this machine is behind a host's name.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
