// Package web has the pages of dibs for people: the storefront, a campaign's page, and the console.
//
// # Basics
//
// New makes a Site, which serves HTML shells and what they load. A shell names its style sheets and modules by an
// address that holds the version of all files together, so that browsers keep them for good. The pages ask the
// documented API for everything else.
//
// # Caveats
//
// There is no build step: modules are served as they stand here, the vendored ones with relative addresses in place
// of package names. The policy of every page allows no inline script, no eval, and nothing from elsewhere but pictures
// from the origins that Options names.
package web

import (
	"embed"
	"fmt"
	"net/url"
	"strings"
)

//go:embed vendor lib shop console css img text pages.html
var files embed.FS

// Options says which pages there are. The zero value has campaign pages and the console.
type Options struct {
	// Storefront shows what is on offer at /; without it / leads to the console and the docs.
	Storefront bool
	// Dev lets people choose who they are, and simulates payments: for `dibs dev` alone.
	Dev bool
	// People says that administrators may sign in at an identity provider.
	People bool
	// Images are the origins, beside the server's own, from which pictures of products are shown:
	// https://images.example say.
	Images []string
}

// Site serves the pages. It never changes, and its methods are safe for concurrent use.
type Site struct {
	options Options
	policy  string
	// version names all assets together.
	version string
	assets  map[string]*asset
	shells  map[string]shell
}

// New reads the embedded files and prepares the pages. An error says which origin of Options.Images is none.
func New(o Options) (*Site, error) {
	for _, origin := range o.Images {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			return nil, fmt.Errorf("web: %q is no origin: write https://images.example", origin)
		}
	}
	s := &Site{options: o, policy: policyOf(o.Images)}
	if err := s.collect(); err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	return s, s.prepare()
}

// policyOf is the Content-Security-Policy of every page.
func policyOf(images []string) string {
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:" + strings.Join(append([]string{""}, images...), " ") +
		"; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// Policy is the Content-Security-Policy that pages are sent with.
func (s *Site) Policy() string { return s.policy }

// Version names the assets of this build; it changes when any of them does.
func (s *Site) Version() string { return s.version }
