package oidc

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/dibs-dev/dibs/access"
)

// CallbackPath is the path of the address to which providers send browsers back.
const CallbackPath = "/console/oidc/callback"

// Config is what a Provider is made of. Issuer, ClientID, Address and Roles are required.
type Config struct {
	// Issuer is the provider's address, exactly as its tokens have it in iss.
	Issuer string
	// ClientID and ClientSecret are the service's name and secret at the provider. A public client has no secret.
	ClientID, ClientSecret string
	// Address is where browsers reach the console, https://admin.shop.example. The provider has to know it with
	// CallbackPath as the address to come back to.
	Address string
	// Scopes are asked for beside openid; default: profile and email.
	Scopes []string
	// GroupsClaim is the claim that has a person's groups, as a list of texts or a single one; default: groups.
	GroupsClaim string
	// Roles are the roles of groups. A person of several groups has the highest of them, one of none is refused.
	Roles map[string]access.Role
	// Transport reaches the provider; default: http.DefaultTransport.
	Transport http.RoundTripper
	// Now is the clock; default: time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Scopes == nil {
		c.Scopes = []string{"profile", "email"}
	}
	c.GroupsClaim = cmp.Or(c.GroupsClaim, "groups")
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// validate returns all that is wrong, joined. The words name the settings as an operator writes them.
func (c *Config) validate() error {
	var errs []error
	if err := CheckIssuer(c.Issuer); err != nil {
		errs = append(errs, fmt.Errorf("the issuer %w", err))
	}
	if err := CheckAddress(c.Address); err != nil {
		errs = append(errs, fmt.Errorf("the address %w", err))
	}
	if c.ClientID == "" {
		errs = append(errs, errors.New("the client id is required"))
	}
	if len(c.Roles) == 0 {
		errs = append(errs, errors.New("no group has a role: every person would be refused"))
	}
	for group, role := range c.Roles {
		if group == "" || !role.May(access.RoleViewer) {
			errs = append(errs, fmt.Errorf("the group %q has the role %q, which is none", group, role))
		}
	}
	return errors.Join(errs...)
}

// maxIssuer bounds an issuer's address in bytes: with the name of a person it has to fit the ledger's column.
const maxIssuer = 255

// CheckIssuer returns what is wrong with the address of a provider: over plain HTTP anyone in between could sign in as
// anyone. Only a provider on this machine may be reached so.
func CheckIssuer(text string) error {
	if len(text) > maxIssuer {
		return fmt.Errorf("must have at most %d bytes", maxIssuer)
	}
	return checkURL(text)
}

// CheckAddress returns what is wrong with the address of the console.
func CheckAddress(text string) error {
	if err := checkURL(text); err != nil {
		return err
	}
	if u, err := url.Parse(text); err != nil || u.Path != "" {
		return errors.New("must end with its host and port, such as https://admin.shop.example: the path is " + CallbackPath)
	}
	return nil
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("must be an address such as https://login.example.com")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(text, "?") || strings.HasSuffix(text, "#"):
		return errors.New("must have no user, no query and no fragment")
	case u.Scheme == "http" && !onMachine(u.Hostname()):
		return errors.New("must begin with https://: over plain HTTP anyone in between could sign in as anyone")
	}
	return nil
}

// onMachine reports whether a host is this machine.
func onMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// ParseRoles reads roles of groups, each GROUP=ROLE. A group may have an equals sign in it, as distinguished names do.
func ParseRoles(list []string) (map[string]access.Role, error) {
	roles := make(map[string]access.Role, len(list))
	for _, text := range list {
		cut := strings.LastIndexByte(text, '=')
		if cut < 1 || !access.Role(text[cut+1:]).May(access.RoleViewer) {
			return nil, fmt.Errorf("%q must be GROUP=ROLE with the role viewer, editor, publisher or admin", text)
		}
		group := text[:cut]
		if _, twice := roles[group]; twice {
			return nil, fmt.Errorf("the group %q is named twice", group)
		}
		roles[group] = access.Role(text[cut+1:])
	}
	return roles, nil
}
