package remote

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli/config"
)

// given returns the value of a flag; nil when the flag was not given, so that the
// server's default holds.
func given[T any](cmd *cobra.Command, flag string, value T) *T {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	return &value
}

// givenDuration is given for a duration.
func givenDuration(cmd *cobra.Command, flag string, value time.Duration) *dibs.Duration {
	return given(cmd, flag, dibs.Duration(value))
}

// fieldFlags are the flags of fields that are called otherwise in the API.
var fieldFlags = map[string]string{
	"campaign_id": "campaign", "product_id": "product", "user_id": "user", "merchant_id": "merchant", "sender_id": "sender",
	"starts_at": "starts", "ends_at": "ends", "limit_per_user": "limit", "tiers": "tier",
	"valid_until_at": "valid-until", "expires_at": "expires",
	"payment_ref": "ref", "tracking_no": "tracking", "opens_at": "room-opens", "mode": "room",
	"registration_opens_at": "registration-opens", "registration_closes_at": "registration-closes",
	"work_bits": "ticket-work", "human_check": "ticket-human-check", "lifetime": "ticket",
}

// flagOf returns the flag of a verb that fills a field, or the argument, as its usage calls it; empty when the verb has
// neither. path is the field's place in the body: of a part that has no flag, that of the whole is returned. The flags
// of the connection fill no field.
func flagOf(cmd *cobra.Command, path []string) string {
	for n := len(path); n > 0; n-- {
		field := path[n-1]
		names := []string{fieldFlags[field], strings.ReplaceAll(field, "_", "-")}
		if n > 1 {
			names = slices.Insert(names, 0, strings.ReplaceAll(path[n-2]+"-"+field, "_", "-"))
		}
		for _, name := range names {
			if f := cmd.Flags().Lookup(name); f != nil && !slices.Contains(config.ClientKeys, strings.ReplaceAll(name, "-", "_")) {
				return "--" + name + element(f, path[n:])
			}
		}
		if argument := strings.ToUpper(strings.TrimSuffix(field, "_id")); slices.Contains(strings.Fields(cmd.Use), argument) {
			return argument
		}
	}
	return ""
}

// element says which of the values of a flag a fault is about, and which part of it: path is its place below the flag's
// field. It is empty for a flag that takes one value.
func element(f *pflag.Flag, path []string) string {
	list, ok := f.Value.(pflag.SliceValue)
	if !ok || len(path) == 0 {
		return ""
	}
	values := list.GetSlice()
	i, err := strconv.Atoi(path[0])
	if err != nil || i < 0 || i >= len(values) {
		return ""
	}
	text := fmt.Sprintf(" %q", values[i])
	if len(path) > 1 {
		text += ": " + strings.Join(path[1:], " ")
	}
	return text
}

// apiWord matches a word that only the API uses.
var apiWord = regexp.MustCompile(`\b[a-z]+(_[a-z]+)+\b`)

// byFlags replaces the fields in a server's refusal by the flags that fill them: a user of the
// command line has never seen the fields. It changes the refusal that err wraps.
func byFlags(cmd *cobra.Command, err error) error {
	var refusal *client.Error
	if !errors.As(err, &refusal) {
		return err
	}
	named := func(text string) string {
		return apiWord.ReplaceAllStringFunc(text, func(word string) string {
			if flag := flagOf(cmd, []string{word}); strings.HasPrefix(flag, "--") {
				return flag
			}
			return word
		})
	}
	refusal.Detail = named(refusal.Detail)
	for i := range refusal.Errors {
		f := &refusal.Errors[i]
		if flag := flagOf(cmd, strings.Split(strings.TrimPrefix(f.Pointer, "/"), "/")); flag != "" {
			f.Pointer = flag
		}
		f.Detail = named(f.Detail)
	}
	return err
}
