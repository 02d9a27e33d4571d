package ci_test

import (
	"bufio"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// bare prepares bare.sh with a folder, as root, if need be as root of a user name
// space. Its debootstrap is a script of the test's, and git and go do nothing.
func bare(t *testing.T, debootstrap string) (cmd *exec.Cmd, folder string) {
	t.Helper()
	// The go command runs the tests again when a file has changed that they looked at.
	if _, err := os.Stat("bare.sh"); err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, dir: t.TempDir()}
	m.has("debootstrap", debootstrap)
	m.has("git", "exit 0")
	m.has("go", "exit 0")
	folder = filepath.Join(t.TempDir(), "bare")
	cmd = exec.CommandContext(t.Context(), "bash", "bare.sh")
	cmd.Env = append(os.Environ(), "PATH="+m.dir+":"+os.Getenv("PATH"), "BARE="+folder, "MIRROR=http://127.0.0.1:1/debian")
	if os.Geteuid() != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
	}
	return cmd, folder
}

// gone checks that nothing is left of the folder, nor beside it.
func gone(t *testing.T, folder string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(filepath.Dir(folder), "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestBareInterrupted: an interrupted run leaves no folder, no mount and no process.
// The pipe ends when every process that writes to it has ended.
func TestBareInterrupted(t *testing.T) {
	// What nohup starts ignores interrupts, and what that starts too, but where they are listened for.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt)
	defer signal.Stop(heard)
	for _, sent := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sent.String(), func(t *testing.T) {
			// It is given debootstrap's arguments, the folder the last but one.
			cmd, folder := bare(t, `
folder=${*: -2:1}
mkdir "$folder/proc" && mount -t proc proc "$folder/proc" && touch "$folder/file"
echo begun >&3
trap '' INT TERM
(while :; do sleep 1; done) &
wait`)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.ExtraFiles = []*os.File{w}
			var said strings.Builder
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(r)
			if line, err := lines.ReadString('\n'); line != "begun\n" {
				t.Fatalf("%q, %v: %v: %s", line, err, cmd.Wait(), said.String())
			}
			if err := cmd.Process.Signal(sent); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("an interrupted run is no failure")
			}
			gone(t, folder)
			if rest, err := lines.ReadString('\n'); rest != "" {
				t.Errorf("%q, %v", rest, err)
			}
		})
	}
}

// TestBareFails: what fails inside fails the whole, and leaves nothing either.
func TestBareFails(t *testing.T) {
	cmd, folder := bare(t, "echo the archive is away; exit 1")
	said, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "the archive is away\n") || !strings.Contains(string(said), "bare: FAILED after") {
		t.Errorf("%v: %s", err, said)
	}
	gone(t, folder)
}

// TestBareKeepsAFolder: a folder that holds something is not touched.
func TestBareKeepsAFolder(t *testing.T) {
	cmd, folder := bare(t, "exit 0")
	kept := filepath.Join(folder, "kept")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	if said, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(said), "is not empty") {
		t.Errorf("%v: %s", err, said)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

// TestBareSaysWhatItNeeds: it installs nothing on the machine.
func TestBareSaysWhatItNeeds(t *testing.T) {
	for _, lacking := range []string{"debootstrap", "git", "go"} {
		m := newMachine(t)
		for _, name := range []string{"debootstrap", "git", "go"} {
			m.has(name, "exit 0")
		}
		m.lacks(lacking)
		if said, asked, err := m.run("bare.sh"); err == nil || asked != "" || !strings.Contains(said, "bare: "+lacking+" is needed") {
			t.Errorf("without %s: %v: %s, asked apt-get %q", lacking, err, said, asked)
		}
	}
}

// TestInBareElsewhere: the part that empties caches and installs packages refuses to
// run on the machine itself.
func TestInBareElsewhere(t *testing.T) {
	m := newMachine(t)
	m.has("go", `echo "$*" >>"$DIR/asked"`)
	if said, asked, err := m.run("inbare.sh"); err == nil || asked != "" || !strings.Contains(said, "started by bare.sh") {
		t.Errorf("%v: %s, asked for %q", err, said, asked)
	}
}
