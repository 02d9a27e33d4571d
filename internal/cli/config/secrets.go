package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/dibs-dev/dibs/internal/keyring"
	"github.com/dibs-dev/dibs/internal/settings"
)

// minJWTSecret is the least length of a token secret in bytes: HS256 is no stronger
// than its key.
const minJWTSecret = 32

// minDifferent is how many different bytes a secret has at least. One drawn by chance
// has more; "aaaa..." and "12341234..." have fewer, and can be guessed at any length.
const minDifferent = 6

// isWeak reports whether a secret is made of too few different bytes to be one.
func isWeak(secret []byte) bool {
	var seen [256]bool
	different := 0
	for _, b := range secret {
		if !seen[b] {
			seen[b] = true
			different++
		}
	}
	return different < minDifferent
}

// secretProblem says why a text cannot be a secret of HS256; empty for a good one.
func secretProblem(secret []byte) string {
	switch {
	case len(secret) < minJWTSecret:
		return fmt.Sprintf("must be at least %d bytes, this one has %d", minJWTSecret, len(secret))
	case isWeak(secret):
		return weakProblem
	}
	return ""
}

var weakProblem = fmt.Sprintf("must have at least %d different characters: openssl rand -hex 32 makes a secret", minDifferent)

// secretRules report a file of secrets that cannot be used.
func secretRules(c *Config) []settings.Fault {
	_, err := c.JWTSecrets()
	return c.judgeErr("jwt_secret_file", err)
}

// jwtSecretRules report a secret that is too weak for HS256.
func jwtSecretRules(c *Config) []settings.Fault {
	if c.JWTSecret == "" {
		return nil
	}
	return c.judge("jwt_secret", secretProblem([]byte(c.JWTSecret)))
}

// HumanSecrets returns the secrets of the human check, one for each line that is not empty.
func (c *Config) HumanSecrets() (secrets [][]byte) {
	for line := range strings.Lines(c.HumanSecret) {
		if line = strings.TrimSpace(line); line != "" {
			secrets = append(secrets, []byte(line))
		}
	}
	return secrets
}

// isHuman reports whether a text is a secret of the human check.
func (c *Config) isHuman(secret []byte) bool {
	return slices.ContainsFunc(c.HumanSecrets(), func(human []byte) bool { return bytes.Equal(human, secret) })
}

// humanRules report a bad secret of the human check. It must differ from those of
// users' tokens: otherwise a voucher of the check would pass as a token, and let
// its holder claim in another user's name. JWTSecrets refuses a file that has it.
func humanRules(c *Config) []settings.Fault {
	for _, secret := range c.HumanSecrets() {
		problem := secretProblem(secret)
		if problem == "" && string(secret) == c.JWTSecret {
			problem = "must be another secret than those of users' tokens (jwt_secret, jwt_secret_file)"
		}
		if problem != "" {
			return []settings.Fault{c.Fault("human_secret", problem)}
		}
	}
	return nil
}

// ReadAdminKey reads the file of admin_key again. It refuses what serve would not start with.
func (c *Config) ReadAdminKey(path string) (string, error) {
	key, err := settings.ReadValue(path)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	if key == "" {
		return "", errors.New("has no key in it")
	}
	if problem := adminKeyProblem(key); problem != "" {
		return "", errors.New(problem)
	}
	return key, nil
}

// ReadHumanSecrets reads the file of human_secret again. It refuses what serve would not
// start with, and changes nothing then.
func (c *Config) ReadHumanSecrets(path string) ([][]byte, error) {
	text, err := settings.ReadValue(path)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	next := *c
	next.HumanSecret = text
	if faults := humanRules(&next); len(faults) > 0 {
		return nil, errors.New(faults[0].Problem)
	}
	// A secret of users' tokens may be in a file of its own.
	if _, err := next.JWTSecrets(); err != nil {
		return nil, fmt.Errorf("jwt_secret_file %w", err)
	}
	secrets := next.HumanSecrets()
	if len(secrets) == 0 {
		return nil, errors.New("has no secret in it")
	}
	c.HumanSecret = text
	return secrets, nil
}

// TokenRules are for verbs that sign tokens: a token without the server's secret
// would be worth nothing.
func TokenRules(c *Config) []settings.Fault {
	if c.JWTSecretFile != "" {
		return secretRules(c)
	}
	return c.faultIf(len(c.JWTSecret) < minJWTSecret, "jwt_secret",
		fmt.Sprintf("is required, at least %d bytes, the same as the server's", minJWTSecret))
}

// JWTSecrets returns the secrets of users' tokens, the one that signs first. It
// reads jwt_secret_file, so that a later call may return others, and refuses a file
// that serve would not start with: a reload obeys the rules of the start.
func (c *Config) JWTSecrets() ([][]byte, error) {
	var secrets [][]byte
	if c.JWTSecret != "" {
		secrets = append(secrets, []byte(c.JWTSecret))
	}
	if c.JWTSecretFile == "" {
		return secrets, nil
	}
	file, err := os.ReadFile(c.JWTSecretFile)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	found := false
	for i, line := range bytes.Split(file, []byte("\n")) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == '#':
			continue
		case len(line) < minJWTSecret:
			return nil, fmt.Errorf("line %d has %d bytes, a secret needs at least %d", i+1, len(line), minJWTSecret)
		case isWeak(line):
			return nil, fmt.Errorf("line %d %s", i+1, weakProblem)
		// humanRules compare with jwt_secret alone.
		case c.isHuman(line):
			return nil, fmt.Errorf("line %d must be another secret than human_secret: a voucher of the human check would pass as a user's token", i+1)
		}
		found = true
		secrets = append(secrets, line)
	}
	if !found {
		return nil, errors.New("has no secret in it")
	}
	return secrets, nil
}

// LedgerKeys returns the keys of ledger_key_file; none without it. It reads the file, so that a
// later call may return others.
func (c *Config) LedgerKeys() ([][]byte, error) {
	if c.LedgerKeyFile == "" {
		return nil, nil
	}
	file, err := os.ReadFile(c.LedgerKeyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return keyring.ReadKeys(file)
}

// ledgerKeyRules report a file of keys that cannot be used.
func ledgerKeyRules(c *Config) []settings.Fault {
	if _, err := c.LedgerKeys(); err != nil {
		return c.judgeErr("ledger_key_file", err)
	}
	return c.faultIf(c.EncryptCodes && c.LedgerKeyFile == "", "encrypt_codes", "needs ledger_key_file, which has the keys")
}

// addressSettings are the settings with addresses, whose users and passwords are read
// again where the address comes from a file.
var addressSettings = []struct {
	key   string
	first func(c *Config) []string
	set   func(c *Config, text string)
	rules func(c *Config) []settings.Fault
}{
	{"engine", func(c *Config) []string { return c.Engine }, func(c *Config, text string) { c.Engine = strings.Fields(text) }, StoreRules},
	{"ledger", func(c *Config) []string { return []string{c.Ledger} }, func(c *Config, text string) { c.Ledger = text }, StoreRules},
	{"events", func(c *Config) []string { return c.Events }, func(c *Config, text string) { c.Events = strings.Fields(text) }, eventsRules},
}

// AddressFile is a file with the addresses of a setting.
type AddressFile struct{ Key, Path string }

// AddressFiles returns the files that addresses of servers come from.
func (c *Config) AddressFiles() (files []AddressFile) {
	for _, s := range addressSettings {
		if path := c.Values.FileOf(s.key); path != "" {
			files = append(files, AddressFile{s.key, path})
		}
	}
	return files
}

// ReadLogins reads the file of addresses again, and has connections that are opened from
// now on use the users and passwords there. It refuses what serve would not start with,
// and other servers than at the start; nothing changes then.
func (c *Config) ReadLogins(of AddressFile) error {
	text, err := settings.ReadValue(of.Path)
	if err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	for _, s := range addressSettings {
		if s.key != of.Key {
			continue
		}
		next := *c
		s.set(&next, text)
		for _, fault := range s.rules(&next) {
			if fault.Key == s.key {
				return errors.New(fault.Problem)
			}
		}
		return c.Logins.Change(s.first(c), s.first(&next))
	}
	return fmt.Errorf("%s has no address", of.Key)
}
