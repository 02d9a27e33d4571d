package config

import (
	"errors"
	"slices"

	"github.com/dibs-dev/dibs/access/oidc"
	"github.com/dibs-dev/dibs/internal/settings"
)

// OIDC returns how administrators sign in at an identity provider; nil without one.
func (c *Config) OIDC() (*oidc.Provider, error) {
	if c.OIDCIssuer == "" {
		return nil, nil //nolint:nilnil // no provider is no fault
	}
	roles, err := oidc.ParseRoles(c.OIDCRoles)
	if err != nil {
		return nil, err
	}
	return oidc.New(oidc.Config{
		Issuer: c.OIDCIssuer, ClientID: c.OIDCClientID, ClientSecret: c.OIDCClientSecret, Address: c.OIDCAddress,
		Scopes: c.OIDCScopes, GroupsClaim: c.OIDCGroupsClaim, Roles: roles,
	})
}

// oidcRules report a provider that no one could sign in at. They connect to nothing: the provider may be away.
func oidcRules(c *Config) []settings.Fault {
	var fs []settings.Fault
	if c.OIDCIssuer == "" {
		for key, given := range map[string]bool{
			"oidc_client_id": c.OIDCClientID != "", "oidc_client_secret": c.OIDCClientSecret != "", "oidc_address": c.OIDCAddress != "", "oidc_roles": len(c.OIDCRoles) > 0,
		} {
			if given {
				fs = append(fs, c.Fault(key, "needs oidc_issuer: without it no one signs in at an identity provider"))
			}
		}
		return fs
	}
	badAddress := oidc.CheckAddress(c.OIDCAddress)
	if c.OIDCAddress == "" {
		badAddress = errors.New("is required with oidc_issuer: where browsers reach the console, such as https://admin.shop.example")
	}
	_, badRoles := oidc.ParseRoles(c.OIDCRoles)
	if len(c.OIDCRoles) == 0 {
		badRoles = errors.New("is required with oidc_issuer: without it no one may sign in")
	}
	return slices.Concat(c.judgeErr("oidc_issuer", oidc.CheckIssuer(c.OIDCIssuer)),
		c.faultIf(c.OIDCClientID == "", "oidc_client_id", "is required with oidc_issuer: the name under which the identity provider knows dibs"),
		c.judgeErr("oidc_address", badAddress), c.judgeErr("oidc_roles", badRoles))
}
