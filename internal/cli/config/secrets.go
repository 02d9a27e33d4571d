package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/dibs-dev/dibs/internal/settings"
)

// minJWTSecret is the least length of a token secret in bytes: HS256 is no stronger
// than its key.
const minJWTSecret = 32

// secretRules report a file of secrets that cannot be used.
func secretRules(c *Config) []settings.Fault {
	if c.JWTSecretFile == "" {
		return nil
	}
	if _, err := c.JWTSecrets(); err != nil {
		return []settings.Fault{c.Fault("jwt_secret_file", err.Error())}
	}
	return nil
}

// jwtSecretRules report a secret that is too short for HS256.
func jwtSecretRules(c *Config) []settings.Fault {
	if n := len(c.JWTSecret); n > 0 && n < minJWTSecret {
		return []settings.Fault{c.Fault("jwt_secret", fmt.Sprintf("must be at least %d bytes, this one has %d", minJWTSecret, n))}
	}
	return nil
}

// humanRules report a bad secret of the human check. It must differ from those of
// users' tokens: otherwise a voucher of the check would pass as a token, and let
// its holder claim in another user's name.
func humanRules(c *Config) []settings.Fault {
	if c.HumanSecret == "" {
		return nil
	}
	if n := len(c.HumanSecret); n < minJWTSecret {
		return []settings.Fault{c.Fault("human_secret", fmt.Sprintf("must be at least %d bytes, this one has %d", minJWTSecret, n))}
	}
	// secretRules reports a file that cannot be read.
	secrets, _ := c.JWTSecrets()
	for _, secret := range secrets {
		if string(secret) == c.HumanSecret {
			return []settings.Fault{c.Fault("human_secret", "must be another secret than those of users' tokens (jwt_secret, jwt_secret_file)")}
		}
	}
	return nil
}

// TokenRules are for verbs that sign tokens: a token without the server's secret
// would be worth nothing.
func TokenRules(c *Config) []settings.Fault {
	if c.JWTSecretFile != "" {
		return secretRules(c)
	}
	if len(c.JWTSecret) < minJWTSecret {
		return []settings.Fault{c.Fault("jwt_secret", fmt.Sprintf("is required, at least %d bytes, the same as the server's", minJWTSecret))}
	}
	return nil
}

// JWTSecrets returns the secrets of users' tokens, the one that signs first. It
// reads jwt_secret_file, so that a later call may return others.
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
		}
		found = true
		secrets = append(secrets, line)
	}
	if !found {
		return nil, errors.New("has no secret in it")
	}
	return secrets, nil
}
