// Package logins has the users and passwords of addresses, which may change while a
// program runs: whoever opens a connection asks for those of that moment.
package logins

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
)

// Book has the users and passwords that have changed since the start. The zero Book
// has none.
//
// It is safe for concurrent use, but for Change, which one goroutine calls. A map that
// changed has is never written again.
type Book struct {
	changed atomic.Pointer[map[string]*url.Userinfo]
}

// Of returns the user and the password of an address, as it was at the start; nil for
// those in the address. A nil Book has none.
func (b *Book) Of(address string) *url.Userinfo {
	if b == nil {
		return nil
	}
	if all := b.changed.Load(); all != nil {
		return (*all)[address]
	}
	return nil
}

// Change takes users and passwords from what stands in place of addresses now, each at
// its place in the list. first are the addresses of the start. Nothing changes when
// anything else of them is another: a program stays with its servers. No error shows a
// password.
func (b *Book) Change(first, now []string) error {
	if len(now) != len(first) {
		return fmt.Errorf("has %d addresses, and had %d at the start: only users and passwords change while dibs runs", len(now), len(first))
	}
	next := make(map[string]*url.Userinfo, len(first))
	if all := b.changed.Load(); all != nil {
		maps.Copy(next, *all)
	}
	for i := range now {
		if strings.HasPrefix(now[i], "sqlite:") && now[i] == first[i] {
			// A path is no URL, and nobody logs in there.
			continue
		}
		was, err := url.Parse(first[i])
		is, unread := url.Parse(now[i])
		if err != nil || unread != nil {
			return errUnread
		}
		login, had := is.User, was.User
		was.User, is.User = nil, nil
		switch {
		case was.String() != is.String():
			return fmt.Errorf("has %s, and had %s at the start: only users and passwords change while dibs runs", Masked(is), Masked(was))
		case login == nil && had != nil:
			return fmt.Errorf("has no user and no password for %s", Masked(is))
		case login != nil:
			next[first[i]] = login
		}
	}
	b.changed.Store(&next)
	return nil
}

// secretOptions are the options in which PostgreSQL takes passwords.
var secretOptions = []string{"password", "sslpassword"}

// HasSecret reports whether an address has a password, in its user part or among its options, or the token that NATS takes
// in place of a user.
func HasSecret(u *url.URL) bool {
	_, has := u.User.Password()
	return has || isToken(u) || slices.ContainsFunc(secretOptions, u.Query().Has)
}

func isToken(u *url.URL) bool {
	_, has := u.User.Password()
	return u.User != nil && !has && (u.Scheme == "nats" || u.Scheme == "tls")
}

// Masked is an address as people may see it, with xxxxx in place of each secret of HasSecret.
func Masked(u *url.URL) string {
	at, options := *u, u.Query()
	if isToken(u) {
		at.User = url.User("xxxxx")
	}
	for _, name := range secretOptions {
		if options.Has(name) {
			options.Set(name, "xxxxx")
			at.RawQuery = options.Encode()
		}
	}
	return at.Redacted()
}

// errUnread has no part of the address: that may be the password.
var errUnread = errors.New("has an address that cannot be read (write special characters in a password as %40)")
