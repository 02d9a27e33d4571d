// Package signedin keeps what dibs login brings: a key for each server, in a file of the user.
package signedin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Key is what a person signs in with until ExpiresAt.
type Key struct {
	Secret    string    `json:"secret"`
	Name      string    `json:"name"`
	Role      string    `json:"role"`
	ExpiresAt time.Time `json:"expires_at"`
}

// fileName is the file's, in the folder dibs of the user's settings.
const fileName = "sign-ins.json"

// maxFile bounds what is read of the file, in bytes.
const maxFile = 1 << 20

// Store is the file. Two programs that write it at once leave what one of them wrote.
type Store struct{ path string }

// Open returns the file below a folder; empty means that of the user's settings. It need not be there.
func Open(folder string) (*Store, error) {
	if folder == "" {
		var err error
		if folder, err = os.UserConfigDir(); err != nil {
			return nil, fmt.Errorf("there is no folder for the user's settings: %w", err)
		}
	}
	return &Store{filepath.Join(folder, "dibs", fileName)}, nil
}

// Path is where the file is.
func (s *Store) Path() string { return s.path }

// Find returns the key for a server; false when there is none. One that has ended is returned too. A file that others
// can read is an error: they may have the keys.
func (s *Store) Find(url string) (Key, bool, error) {
	all, err := s.read()
	if err != nil {
		return Key{}, false, err
	}
	k, ok := all[name(url)]
	return k, ok, nil
}

// Keep stores the key for a server, and drops those that have ended.
func (s *Store) Keep(url string, k Key, now time.Time) error {
	all, err := s.read()
	if err != nil {
		return err
	}
	for at, old := range all {
		if !now.Before(old.ExpiresAt) {
			delete(all, at)
		}
	}
	all[name(url)] = k
	return s.write(all)
}

// Forget drops the key for a server.
func (s *Store) Forget(url string) error {
	all, err := s.read()
	if err != nil {
		return err
	}
	delete(all, name(url))
	return s.write(all)
}

// name is the same for every way to write a server's address.
func name(url string) string { return strings.ToLower(strings.TrimRight(url, "/")) }

func (s *Store) read() (map[string]Key, error) {
	all := map[string]Key{}
	info, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others can read %s: run chmod 600 on it, and dibs logout, since they may have its keys", s.path)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s is too large: delete it", s.path)
	}
	raw, err := os.ReadFile(s.path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &all); err != nil || all == nil {
		return nil, fmt.Errorf("%s cannot be read: delete it", s.path)
	}
	return all, nil
}

// write replaces the file as a whole, so that a reader finds the old one or the new one.
func (s *Store) write(all map[string]Key) error {
	raw, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	folder := filepath.Dir(s.path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	// CreateTemp makes files that only their owner can read.
	f, err := os.CreateTemp(folder, fileName+".")
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
