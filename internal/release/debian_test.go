package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// debianRoot is a folder that dpkg takes for a machine.
type debianRoot struct {
	t   *testing.T
	dir string
}

// dpkg runs dpkg on the folder. The package's scripts run outside of it, and
// are told by DPKG_ROOT: a folder has no shell.
func (d *debianRoot) dpkg(args ...string) string {
	d.t.Helper()
	args = append([]string{"--root=" + d.dir, "--force-script-chrootless", "--force-depends", "--force-not-root", "--log=/dev/null"}, args...)
	return said(d.t, "dpkg", args...)
}

// is fails unless a file is there with these permissions; "gone" when it must not
// be there.
func (d *debianRoot) is(name, mode string) {
	d.t.Helper()
	info, err := os.Stat(filepath.Join(d.dir, name))
	got := "gone"
	if err == nil {
		got = info.Mode().String()
	} else if !os.IsNotExist(err) {
		d.t.Fatal(err)
	}
	if got != mode {
		d.t.Errorf("%s is %s, want %s", name, got, mode)
	}
}

// tryPackage installs the package in a folder, upgrades, removes and purges it.
func tryPackage(t *testing.T, r *release) {
	d := &debianRoot{t, t.TempDir()}
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "etc"} {
		must(t, os.MkdirAll(filepath.Join(d.dir, dir), 0o755))
	}
	must(t, os.WriteFile(filepath.Join(d.dir, "var/lib/dpkg/status"), nil, 0o644))
	deb := r.path("dibs_" + debianVersion(testVersion) + "_" + here.arch + ".deb")

	if out := d.dpkg("--install", deb); !strings.Contains(out, "systemctl enable --now dibs") {
		t.Errorf("the package does not say what is next:\n%s", out)
	}
	d.is("usr/bin/dibs", "-rwxr-xr-x")
	d.is("etc/dibs/dibs.env", "-rw-------")
	d.is("lib/systemd/system/dibs.service", "-rw-r--r--")
	d.is("usr/share/man/man1/dibs.1.gz", "-rw-r--r--")
	d.is("usr/share/bash-completion/completions/dibs", "-rw-r--r--")
	if users, err := os.ReadFile(filepath.Join(d.dir, "etc/passwd")); err != nil || !strings.HasPrefix(string(users), "dibs:") {
		t.Errorf("there is no user dibs: %v\n%s", err, users)
	}
	if out := said(t, filepath.Join(d.dir, "usr/bin/dibs"), "version"); !strings.Contains(out, testVersion) {
		t.Errorf("the installed program says %s", out)
	}
	tryUnit(t, d.dir)

	settings := filepath.Join(d.dir, "etc/dibs/dibs.env")
	must(t, os.WriteFile(settings, []byte("DIBS_JWT_SECRET=mine\n"), 0o600))
	data := filepath.Join(d.dir, "var/lib/dibs/ledger.db")
	must(t, os.MkdirAll(filepath.Dir(data), 0o700))
	must(t, os.WriteFile(data, []byte("claims"), 0o600))
	d.dpkg("--install", deb)
	if kept, err := os.ReadFile(settings); err != nil || string(kept) != "DIBS_JWT_SECRET=mine\n" {
		t.Errorf("after an upgrade the settings are %q, %v", kept, err)
	}
	d.dpkg("--remove", "dibs")
	d.is("usr/bin/dibs", "gone")
	d.is("etc/dibs/dibs.env", "-rw-------")
	if out := d.dpkg("--purge", "dibs"); !strings.Contains(out, "/var/lib/dibs is kept") {
		t.Errorf("the package does not say what it leaves:\n%s", out)
	}
	d.is("etc/dibs/dibs.env", "gone")
	d.is("var/lib/dibs/ledger.db", "-rw-------")
}

// tryUnit lets systemd read the installed unit.
func tryUnit(t *testing.T, root string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "lib/systemd/system/dibs.service"))
	must(t, err)
	for _, line := range []string{"ExecStart=/usr/bin/dibs serve\n", "User=dibs\n", "EnvironmentFile=/etc/dibs/dibs.env\n", "StateDirectory=dibs\n"} {
		if !strings.Contains(string(text), "\n"+line) {
			t.Errorf("the unit has no %s", line)
		}
	}
	if strings.Contains(string(text), "DynamicUser") || strings.Contains(string(text), "/usr/local") {
		t.Errorf("the unit is not the package's:\n%s", text)
	}
	unit := filepath.Join(t.TempDir(), "dibs.service")
	runs := strings.NewReplacer("/usr/bin/dibs", "/bin/true", "User=dibs", "User=daemon", "Group=dibs", "Group=daemon").Replace(string(text))
	must(t, os.WriteFile(unit, []byte(runs), 0o600))
	if out := said(t, "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit); strings.Contains(out, "dibs.service") {
		t.Error(out)
	}
}

// TestDebianVersion: dpkg takes every version that git describes, and sorts them
// as they follow one another.
func TestDebianVersion(t *testing.T) {
	names := []string{"0123456abcde", "v1.2.0-rc.1", "v1.2.0", "v1.2.0-1-gabcdef0", "v1.2.0-12-gabcdef0", "v1.2.0-12-gabcdef0-dirty", "v1.2.1"}
	for i, name := range names {
		v := debianVersion(name)
		said(t, "dpkg", "--validate-version", v)
		if i > 0 {
			if err := exec.CommandContext(t.Context(), "dpkg", "--compare-versions", debianVersion(names[i-1]), "lt", v).Run(); err != nil {
				t.Errorf("%s is not older than %s", debianVersion(names[i-1]), v)
			}
		}
	}
	for name, want := range map[string]string{"abcdef0": "0~abcdef0", "v0.9.0": "0.9.0", "dev": "0~dev", "abcdef0-dirty": "0~abcdef0+dirty"} {
		if got := debianVersion(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
