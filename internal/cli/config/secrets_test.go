package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/logins"
	"github.com/dibs-dev/dibs/internal/settings"
)

// TestHumanSecret checks that a voucher of the human check cannot pass as a token.
func TestHumanSecret(t *testing.T) {
	const other = "a secret of the check, 32 bytes and more"
	file := clitest.WriteFile(t, "secrets.txt", other+"\n")
	for what, c := range map[string]struct {
		args []string
		want string
	}{
		"short":               {[]string{"--human-secret", "short"}, "human_secret (flag --human-secret): must be at least 32 bytes, this one has 5"},
		"that of the tokens":  {[]string{"--human-secret", clitest.Secret}, "human_secret (flag --human-secret): must be another secret than those of users' tokens"},
		"one of the file's":   {[]string{"--human-secret", other, "--jwt-secret-file", file}, "jwt_secret_file (flag --jwt-secret-file): line 1 must be another secret than human_secret"},
		"a file not readable": {[]string{"--human-secret", other, "--jwt-secret-file", file + "x"}, "jwt_secret_file (flag --jwt-secret-file): cannot be read"},
	} {
		t.Run(what, func(t *testing.T) {
			r := clitest.Run(t, clitest.Secrets, append([]string{"config", "check"}, c.args...)...)
			r.Want(t, 2, "1 setting is wrong", c.want)
			if strings.Contains(r.Err, clitest.Secret) || strings.Contains(r.Err, other) {
				t.Errorf("a secret is told:\n%s", r.Err)
			}
		})
	}
	clitest.Run(t, clitest.Secrets, "config", "check", "--human-secret", other).Want(t, 0, "the settings are good")
}

// TestWeakSecrets checks that a secret of the right length that anybody could guess is
// refused, wherever it stands.
func TestWeakSecrets(t *testing.T) {
	weak := strings.Repeat("a", 48)
	file := clitest.WriteFile(t, "secrets.txt", "# rotated\n"+weak+"\n")
	for what, c := range map[string]struct {
		args []string
		want string
	}{
		"key":     {[]string{"--admin-key", strings.Repeat("abcde", 5)}, "admin_key (flag --admin-key): must have at least 6 different characters"},
		"secret":  {[]string{"--jwt-secret", strings.Repeat("1234", 9)}, "jwt_secret (flag --jwt-secret): must have at least 6 different characters"},
		"file":    {[]string{"--jwt-secret-file", file}, "jwt_secret_file (flag --jwt-secret-file): line 2 must have at least 6 different characters"},
		"voucher": {[]string{"--human-secret", weak}, "human_secret (flag --human-secret): must have at least 6 different characters"},
	} {
		t.Run(what, func(t *testing.T) {
			r := clitest.Run(t, clitest.Secrets, append([]string{"config", "check"}, c.args...)...)
			r.Want(t, 2, "1 setting is wrong", c.want)
			if strings.Contains(r.Err, weak) {
				t.Errorf("a secret is told:\n%s", r.Err)
			}
		})
	}
}

// TestReadableAddresses checks that a file of an address with a password which other users of the machine can read is
// told: one of a variable, and the file of all settings.
func TestReadableAddresses(t *testing.T) {
	for name, value := range map[string]string{
		"DIBS_ENGINE": "redis://u:secret-pw@127.0.0.1:1/0", "DIBS_LEDGER": "mysql://u:secret-pw@127.0.0.1:1/d", "DIBS_EVENTS": "nats://u:secret-pw@127.0.0.1:1/s?stream=s",
		"DIBS_HUMAN_SECRET": "a secret of the human check, 32 bytes+",
	} {
		key := strings.ToLower(strings.TrimPrefix(name, "DIBS_"))
		for file, env := range map[string][]string{
			clitest.WriteFile(t, "address.txt", value+"\n"):            {name + "_FILE="},
			clitest.WriteFile(t, "dibs.yaml", key+": \""+value+"\"\n"): {"DIBS_CONFIG="},
		} {
			env[0] += file
			note := "note: " + file + " holds " + key + " and can be read by others: chmod 600 " + file
			for mode, told := range map[os.FileMode]bool{0o644: true, 0o640: true, 0o600: false} {
				if err := os.Chmod(file, mode); err != nil {
					t.Fatal(err)
				}
				r := clitest.Run(t, append(env, clitest.Secrets...), "config", "check")
				if strings.Contains(r.Out+r.Err, note) != told || strings.Contains(r.Out+r.Err, "secret-pw") {
					t.Errorf("%s with mode %o: want the note: %v\n%s%s", env[0], mode, told, r.Out, r.Err)
				}
			}
		}
	}
	// A file for an address alone is there to keep it from others, whatever is in it.
	alone := clitest.WriteFile(t, "address.txt", "redis://127.0.0.1:1/0\n")
	if err := os.Chmod(alone, 0o644); err != nil {
		t.Fatal(err)
	}
	clitest.Run(t, append([]string{"DIBS_ENGINE_FILE=" + alone}, clitest.Secrets...), "config", "check").Want(t, 0, alone+" holds engine and can be read by others")
	// An address without a password may be read.
	file := clitest.WriteFile(t, "dibs.yaml", "ledger: mysql://u@127.0.0.1:1/d\n")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := clitest.Run(t, append([]string{"DIBS_CONFIG=" + file}, clitest.Secrets...), "config", "check"); strings.Contains(r.Out+r.Err, "can be read by others") {
		t.Errorf("%s%s", r.Out, r.Err)
	}
}

// TestReadableSecrets checks that a file of secrets which other users of the machine can
// read is told.
func TestReadableSecrets(t *testing.T) {
	file := clitest.WriteFile(t, "secrets.txt", "the secret of users' tokens, 32 bytes+\n")
	check := func() clitest.Result {
		return clitest.Run(t, clitest.Secrets, "config", "check", "--jwt-secret-file", file)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	check().Want(t, 0, "note: "+file+" holds secrets of users' tokens and can be read by others: chmod 600 "+file)
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := check(); strings.Contains(r.Out+r.Err, "note:") {
		t.Errorf("a file of mode 600 is doubted:\n%s%s", r.Out, r.Err)
	}
}

// TestLedgerPathsAreReadAgain: the file with the address of a ledger is read again when the
// address is the path of a file, whatever is in it.
func TestLedgerPathsAreReadAgain(t *testing.T) {
	for _, address := range []string{"sqlite:/var/lib/my  data/ledger.db", "sqlite:/var/lib/100%/ledger.db", "sqlite:ledger.db"} {
		c := &config.Config{}
		values, faults, err := settings.Load(c, settings.Sources{Environ: []string{"DIBS_LEDGER=" + address}})
		if err != nil || len(faults) > 0 {
			t.Fatal(err, faults)
		}
		c.Values, c.Logins = values, &logins.Book{}
		file := config.AddressFile{Key: "ledger", Path: clitest.WriteFile(t, "ledger.txt", address+"\n")}
		if err := c.ReadLogins(file); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		file.Path = clitest.WriteFile(t, "ledger.txt", "sqlite:/var/lib/other data/ledger.db\n")
		if err := c.ReadLogins(file); err == nil {
			t.Errorf("%s: another file is taken", address)
		}
	}
}
