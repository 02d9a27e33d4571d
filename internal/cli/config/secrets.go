package config

import (
	"bytes"
	"fmt"
	"os"

	"github.com/dibs-dev/dibs/internal/settings"
)

// MinJWTSecret is the least length of the tokens' secret: HS256 is no stronger
// than its key.
const MinJWTSecret = 32

// SecretRules find fault with the file of secrets.
func SecretRules(c *Config) []settings.Fault {
	if c.JWTSecretFile == "" {
		return nil
	}
	if _, err := c.JWTSecrets(); err != nil {
		return []settings.Fault{c.Fault("jwt_secret_file", err.Error())}
	}
	return nil
}

// humanRules find fault with the secret of the human check: one that is also good
// for users' tokens would let its server, and everybody who passes a voucher on as a
// token, claim for anybody.
func humanRules(c *Config) []settings.Fault {
	if c.HumanSecret == "" {
		return nil
	}
	if n := len(c.HumanSecret); n < MinJWTSecret {
		return []settings.Fault{c.Fault("human_secret", fmt.Sprintf("must be at least %d bytes, this one has %d", MinJWTSecret, n))}
	}
	// A file that cannot be read is secretRules' to tell.
	secrets, _ := c.JWTSecrets()
	for _, secret := range secrets {
		if string(secret) == c.HumanSecret {
			return []settings.Fault{c.Fault("human_secret", "must be another secret than those of users' tokens (jwt_secret, jwt_secret_file)")}
		}
	}
	return nil
}

// JWTSecrets are the secrets of users' tokens; the first one signs.
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
		case len(line) < MinJWTSecret:
			return nil, fmt.Errorf("line %d has %d bytes, a secret needs at least %d", i+1, len(line), MinJWTSecret)
		}
		found = true
		secrets = append(secrets, line)
	}
	if !found {
		return nil, fmt.Errorf("has no secret in it")
	}
	return secrets, nil
}
