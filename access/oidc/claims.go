package oidc

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
)

// maxSubject bounds a provider's name of a person, in bytes; OpenID Connect says the same.
const maxSubject = 255

// identity is what a provider says of a person.
type identity struct {
	subject string
	// claims are those of the token, and then those of the provider's userinfo that the token lacks.
	claims map[string]json.RawMessage
}

// read verifies the provider's token, and returns who it is about. The library checks signature, issuer, audience and
// end; the rest is here.
func (p *Provider) read(ctx context.Context, at *endpoints, token *oauth2.Token, a access.Attempt) (*identity, error) {
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return nil, refusal(errToken, errors.New("the provider sent no id_token"))
	}
	is, err := at.Verifier(&oidc.Config{ClientID: p.cfg.ClientID, Now: p.cfg.Now}).Verify(ctx, raw)
	if err != nil {
		return nil, refusal(errToken, err)
	}
	// Without it a token that was given for another sign-in could be played into this one.
	if subtle.ConstantTimeCompare([]byte(is.Nonce), []byte(a.Nonce)) != 1 {
		return nil, refusal(errToken, errors.New("the token's nonce is of another sign-in"))
	}
	found := &identity{subject: is.Subject, claims: map[string]json.RawMessage{}}
	if err := is.Claims(&found.claims); err != nil {
		return nil, refusal(errToken, err)
	}
	// A token for several audiences names the one that it was given to.
	if party := found.text("azp"); party != "" && party != p.cfg.ClientID {
		return nil, refusal(errToken, fmt.Errorf("the token was given to %q", party))
	}
	if !visible(is.Subject) || len(is.Subject) > maxSubject {
		return nil, refusal(errToken, errors.New("the token's subject cannot be stored"))
	}
	if found.claims[p.cfg.GroupsClaim] != nil && found.claims["email"] != nil || at.UserInfoEndpoint() == "" {
		return found, nil
	}
	// Many providers keep tokens short, and tell the rest when they are asked.
	more, err := at.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return nil, p.away(fmt.Errorf("userinfo: %w", err))
	}
	if more.Subject != is.Subject {
		return nil, refusal(errToken, errors.New("userinfo is about another person than the token"))
	}
	var rest map[string]json.RawMessage
	if err := more.Claims(&rest); err != nil {
		return nil, refusal(errToken, err)
	}
	for name, value := range rest {
		if found.claims[name] == nil {
			found.claims[name] = value
		}
	}
	return found, nil
}

// text is a claim that is a text; empty for any other.
func (i *identity) text(name string) (text string) {
	if json.Unmarshal(i.claims[name], &text) != nil {
		return ""
	}
	return text
}

// groups are a person's groups: a list of texts, or one text.
func (i *identity) groups(claim string) ([]string, error) {
	raw := i.claims[claim]
	if raw == nil || string(raw) == "null" {
		return nil, fmt.Errorf("there is no claim %q", claim)
	}
	var list []string
	if err := json.Unmarshal(raw, &list); err == nil {
		return list, nil
	}
	var one string
	if err := json.Unmarshal(raw, &one); err != nil {
		return nil, fmt.Errorf("the claim %q is neither a text nor a list of texts", claim)
	}
	return []string{one}, nil
}

// name is what the admin log calls a person. An address that the provider has not verified may be anyone's: providers
// that do not say so, as many do not, may have taken it from the person.
func (i *identity) name() string {
	address := i.text("email")
	switch verified := string(i.claims["email_verified"]); {
	case !visible(address):
		return i.subject
	// Some providers send the text in place of the value.
	case verified == "true" || verified == `"true"`:
		return address
	}
	return address + " (unverified)"
}

// person gives the person the highest role of their groups. *dibs.Error of Forbidden when no group has one: it names
// what the person can tell the administrator of the provider.
func (p *Provider) person(i *identity) (*access.Person, error) {
	is := &access.Person{Subject: p.cfg.Issuer + " " + i.subject, Name: i.name()}
	groups, err := i.groups(p.cfg.GroupsClaim)
	if err != nil {
		return is, &dibs.Error{Reason: dibs.Forbidden, Cause: err, Detail: dibs.Textf(
			"you are signed in as %s, and the identity provider does not say in the claim %s which groups you are in: ask its administrator",
			"您已以 %s 的身份登录，但身份提供方没有在声明 %s 中说明您所属的组：请联系其管理员", is.Name, p.cfg.GroupsClaim)}
	}
	for group, role := range p.cfg.Roles {
		if slices.Contains(groups, group) && !is.Role.May(role) {
			is.Role = role
		}
	}
	if is.Role == "" {
		return is, &dibs.Error{Reason: dibs.Forbidden, Cause: fmt.Errorf("the groups %q have no role", groups), Detail: dibs.Textf(
			"you are signed in as %s, and none of your groups may use this console: ask its administrator",
			"您已以 %s 的身份登录，但您所属的组均无权使用此控制台：请联系其管理员", is.Name)}
	}
	return is, nil
}
