package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
)

// Limits of what doctor finds good enough: free space in bytes, and open files.
const (
	littleSpace = 5 << 30   // less is a warning
	noSpace     = 256 << 20 // less is a failure
	fewFiles    = 10_000    // fewer is a warning
)

// machineFindings examines the data folder, unless a database server has all data, and how many files
// the process may open. A system that does not tell its limits gives no finding.
func machineFindings(c *config.Config) []dibs.Finding {
	var fs []dibs.Finding
	if c.Data != "" && !sqlledger.InServer(c.Ledger) {
		fs = append(fs, folderFindings(c.Data)...)
	}
	// Each WebSocket, event stream and connection to a database is an open file.
	if files, ok := openFileLimit(); ok {
		f := dibs.Finding{
			Standing: dibs.StandingOK, Subject: "open files", Found: fmt.Sprintf("this process may open %d", files),
			Wanted: fmt.Sprintf("%d or more: a connection is one", fewFiles), Remedy: "ulimit -n 65536, or LimitNOFILE=65536 in the systemd unit",
		}
		if files < fewFiles {
			f.Standing = dibs.StandingWarn
		}
		fs = append(fs, f)
	}
	return fs
}

// folderFindings examines the data folder: whether this user may write to it, whether others may read
// it, and the space on its disk. It writes an empty file and removes it, since permissions alone do
// not say whether a disk is read-only or full. doctor must run as the user that runs serve.
func folderFindings(folder string) []dibs.Finding {
	// A folder that does not exist yet is made by serve: what counts is the folder that it is made in.
	at := existing(folder)
	probe, err := os.CreateTemp(at, ".dibs-doctor-")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return []dibs.Finding{{
			Standing: dibs.StandingFail, Subject: "data folder", Found: err.Error(), Wanted: "a folder that this user may write to",
			Remedy: "chown it to the user that runs dibs, or name another --data",
		}}
	}
	// The probe was made in the folder, or in the one above that serve makes it in.
	found := folder + " can be written to"
	if at != folder {
		found = folder + " does not exist yet: serve makes it"
	}
	fs := []dibs.Finding{{Standing: dibs.StandingOK, Subject: "data folder", Found: found}}
	// serve makes it as 0700; one that was made by hand may be open to all.
	if info, err := os.Stat(folder); err == nil && info.Mode().Perm()&0o077 != 0 {
		fs = append(fs, dibs.Finding{
			Standing: dibs.StandingWarn, Subject: "permissions", Found: fmt.Sprintf("%s has mode %04o", folder, info.Mode().Perm()),
			Wanted: "0700: other users must not read claims and keys", Remedy: "chmod 700 " + folder,
		})
	}
	free, ok := freeSpace(at)
	if !ok {
		return fs
	}
	f := dibs.Finding{
		Standing: dibs.StandingOK, Subject: "disk", Found: fmt.Sprintf("%.1f GiB free", float64(free)/(1<<30)),
		Wanted: fmt.Sprintf("%d GiB or more: a million claims take about 250 MiB in ledger and journal", littleSpace>>30),
		Remedy: "free some space, or name a --data on another disk",
	}
	switch {
	case free < noSpace:
		f.Standing = dibs.StandingFail
	case free < littleSpace:
		f.Standing = dibs.StandingWarn
	}
	return append(fs, f)
}

// existing returns the path, or the nearest folder above it that exists.
func existing(path string) string {
	for {
		_, err := os.Stat(path)
		above := filepath.Dir(path)
		// The root, or "." of a relative path, has nothing above it.
		if err == nil || above == path {
			return path
		}
		path = above
	}
}
