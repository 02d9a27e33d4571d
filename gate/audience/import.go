package audience

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/faults"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/gate"
)

// 64 piles of ten million users have some 160,000 each, which fit in memory; a part
// of 8,192 users is one row of the ledger.
const (
	// piles is how many piles users are put on by the first bits of their prints,
	// so that one at a time is sorted in memory.
	piles    = 64
	pileBits = 6
	// partUsers is the most users of a part.
	partUsers = 8192
	// maxLine is the longest line.
	maxLine = 4 << 10
)

// Imported is what an import did.
type Imported struct {
	dibs.Audience
	// Duplicates is how many lines named a user again.
	Duplicates int64
}

// View returns it as shown.
func (i *Imported) View() api.AudienceView {
	v := api.AudienceViewOf(&i.Audience)
	v.Duplicates = &i.Duplicates
	return v
}

// Import replaces a list by the users of a file, one on each line; a first line
// `user` or `user_id` is left out, and so are lines without anything. All of
// them count from one moment on, or, when any line is bad, none:
// *dibs.Error of InvalidRequest names the first of them. done is told how many
// users have been stored; it may be nil.
func Import(ctx context.Context, store gate.AudienceLedger, id string, file io.Reader, done func(stored int64)) (*Imported, error) {
	if !dibs.IsID(id) {
		return nil, dibs.Invalid(dibs.Fault{Field: "/id", Problem: dibs.BadID})
	}
	seed := make([]byte, seedLen)
	_, _ = rand.Read(seed)
	s, err := newSorter(newPrinter([seedLen]byte(seed)))
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := readLines(ctx, file, userRules, s.add); err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	// The new version counts from finish on; before that nodes read the old one.
	w := &writer{store: store, done: done, a: dibs.Audience{ID: id, Version: now.UnixNano(), Seed: seed, UpdatedAt: now.Truncate(time.Millisecond)}}
	if err := s.each(func(user string) error { return w.add(ctx, user) }); err != nil {
		return nil, errors.Join(err, w.drop(ctx))
	}
	if err := w.finish(ctx); err != nil {
		return nil, errors.Join(err, w.drop(ctx))
	}
	return &Imported{Audience: w.a, Duplicates: s.duplicates}, nil
}

// HasNone reports whether a file names no user: it is empty, or has only a first line `user` or
// `user_id`, and lines without anything. A line that cannot be read counts as a user.
func HasNone(file io.Reader) bool {
	return readLines(context.Background(), file, userRules, func(string) error { return errSome }) == nil
}

// errSome ends the reading of HasNone.
var errSome = errors.New("there is a user")

// parse reads a line of a file, the n-th: ok says that it can be read, skip that
// there is nothing on it.
type parse[T any] func(line string, n int) (v T, ok, skip bool)

// rules are what a file's lines are judged by.
type rules[T any] struct {
	parse parse[T]
	// bad is the fault of a line that cannot be read, many that of the one beyond
	// MaxAudience.
	bad, many dibs.Text
}

var userRules = rules[string]{
	parse: func(user string, n int) (string, bool, bool) {
		return user, dibs.IsID(user), user == "" || n == 1 && (user == "user" || user == "user_id")
	},
	bad: dibs.Text{
		EN: "is no user: one id of 1-64 characters of A-Z a-z 0-9 . _ - on each line", ZH: "不是用户 ID：每行一个，1-64 个字符，限 A-Z a-z 0-9 . _ -",
	},
	many: dibs.Textf("is one more than the %d users that a list may have", "超过名单上限 %d 个用户", gate.MaxAudience),
}

// readLines calls add for each line of a file, as long as all could be read.
func readLines[T any](ctx context.Context, file io.Reader, r rules[T], add func(T) error) error {
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	var fs faults.List
	n, taken := 0, 0
	fault := func(n int, problem dibs.Text) dibs.Fault {
		return dibs.Fault{Field: fmt.Sprintf("/lines/%d", n), Problem: problem}
	}
	for len(fs) < dibs.MaxListedFaults && lines.Scan() {
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		v, ok, skip := r.parse(lineText(lines.Text(), n), n)
		switch {
		case skip:
			continue
		case !ok:
			fs = append(fs, fault(n, r.bad))
			continue
		}
		if taken++; taken > gate.MaxAudience {
			return dibs.Invalid(fault(n, r.many))
		}
		if len(fs) > 0 {
			// Nothing of it will count.
			continue
		}
		if err := add(v); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		fs = append(fs, fault(n+1, r.bad))
	} else if lines.Err() != nil {
		return fmt.Errorf("audience: reading the file: %w", lines.Err())
	}
	return fs.Err()
}

// lineText is what a line says, without what editors and spreadsheets add.
func lineText(line string, n int) string {
	if n == 1 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	line = strings.TrimSpace(line)
	if len(line) > 1 && line[0] == '"' && line[len(line)-1] == '"' {
		line = line[1 : len(line)-1]
	}
	return line
}

// sorter puts users in the order of their prints, with little memory.
type sorter struct {
	p          *printer
	piles      [piles]pile
	duplicates int64
}

type pile struct {
	file *os.File
	w    *bufio.Writer
}

func newSorter(p *printer) (*sorter, error) {
	s := &sorter{p: p}
	for i := range s.piles {
		f, err := os.CreateTemp("", "dibs-pile-")
		if err == nil {
			s.piles[i] = pile{f, bufio.NewWriterSize(f, 32<<10)}
			err = os.Remove(f.Name())
		}
		if err != nil {
			s.close()
			return nil, dibs.Unavail(dibs.EffectNone, fmt.Errorf("audience: making a temporary file: %w", err))
		}
	}
	return s, nil
}

func (s *sorter) close() {
	for _, p := range s.piles {
		if p.file != nil {
			// They have no name: nothing is left of them.
			_ = p.file.Close()
		}
	}
}

func (s *sorter) add(user string) error {
	w := s.piles[s.p.of(user)>>(printBits-pileBits)].w
	if err := w.WriteByte(byte(len(user))); err != nil {
		return dibs.Unavail(dibs.EffectNone, err)
	}
	_, err := w.WriteString(user)
	return err
}

// each calls f for each user once, in order.
func (s *sorter) each(f func(user string) error) error {
	type one struct {
		print uint64
		user  string
	}
	var all []one
	for i := range s.piles {
		p := &s.piles[i]
		if err := p.w.Flush(); err != nil {
			return dibs.Unavail(dibs.EffectNone, err)
		}
		if _, err := p.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		raw, err := io.ReadAll(p.file)
		if err != nil {
			return err
		}
		text := string(raw)
		all = all[:0]
		for len(text) > 0 {
			n := int(text[0])
			user := text[1 : 1+n]
			text = text[1+n:]
			all = append(all, one{s.p.of(user), user})
		}
		slices.SortFunc(all, func(a, b one) int {
			if a.print != b.print {
				return cmp.Compare(a.print, b.print)
			}
			return strings.Compare(a.user, b.user)
		})
		for k := range all {
			if k > 0 && all[k].user == all[k-1].user {
				s.duplicates++
				continue
			}
			if err := f(all[k].user); err != nil {
				return err
			}
		}
	}
	return nil
}

// writer stores users in parts.
type writer struct {
	store gate.AudienceLedger
	done  func(int64)
	a     dibs.Audience
	parts int
	users []string
}

func (w *writer) add(ctx context.Context, user string) error {
	w.users = append(w.users, user)
	w.a.Users++
	if len(w.users) < partUsers {
		return nil
	}
	return w.flush(ctx)
}

func (w *writer) flush(ctx context.Context) error {
	raw, err := packUsers(w.users)
	if err != nil {
		return err
	}
	if err := w.store.PutAudiencePart(ctx, w.a.ID, w.a.Version, w.parts, raw); err != nil {
		return err
	}
	w.parts++
	w.users = w.users[:0]
	if w.done != nil {
		w.done(w.a.Users)
	}
	return nil
}

// finish stores the rest, and an end that says that nothing is missing.
func (w *writer) finish(ctx context.Context) error {
	if len(w.users) > 0 {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.store.FinishAudience(ctx, &w.a)
}

// drop takes away what was stored of an import that was broken off.
func (w *writer) drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return w.store.DropAudience(ctx, w.a.ID, w.a.Version)
}

// packUsers writes users as a part has them: each with its length before it, all
// of it compressed.
func packUsers(users []string) ([]byte, error) {
	var out bytes.Buffer
	z, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, 64<<10)
	b = binary.AppendUvarint(b, uint64(len(users)))
	for _, u := range users {
		b = append(append(b, byte(len(u))), u...)
	}
	if _, err := z.Write(b); err != nil {
		return nil, err
	}
	err = z.Close()
	return out.Bytes(), err
}

var errPart = fmt.Errorf("%w: a part of a list of users cannot be read", dibs.ErrCorrupt)

// maxPart bounds a part that is read.
const maxPart = partUsers*(dibs.MaxIDLen+1) + binary.MaxVarintLen64

// unpackUsers calls f for each user of a part.
func unpackUsers(part []byte, f func(user string) error) error {
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(part)), maxPart+1))
	if err != nil || len(raw) > maxPart {
		return errors.Join(errPart, err)
	}
	count, n := binary.Uvarint(raw)
	if n <= 0 {
		return errPart
	}
	text := string(raw[n:])
	for ; count > 0; count-- {
		if len(text) == 0 || len(text) < 1+int(text[0]) {
			return errPart
		}
		user := text[1 : 1+int(text[0])]
		text = text[1+len(user):]
		if !dibs.IsID(user) {
			return errPart
		}
		if err := f(user); err != nil {
			return err
		}
	}
	if text != "" {
		return errPart
	}
	return nil
}

// Load reads a version of a list into a set.
func Load(ctx context.Context, store gate.AudienceLedger, a *dibs.Audience) (*Set, error) {
	if a.Users < 0 || a.Users > gate.MaxAudience || len(a.Seed) < seedLen {
		return nil, fmt.Errorf("%w: the list %s of %d users", dibs.ErrCorrupt, a.ID, a.Users)
	}
	p := newPrinter([seedLen]byte(a.Seed))
	set, err := build(p, a.Users, func(add func(string) error) error { return eachUser(ctx, store, a, add) })
	if !errors.Is(err, errOrder) {
		return set, err
	}
	// It is in the order of another version of this program.
	s, err := newSorter(p)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := eachUser(ctx, store, a, s.add); err != nil {
		return nil, err
	}
	return build(p, a.Users, s.each)
}

// eachUser calls f for each user of a version of a list.
func eachUser(ctx context.Context, store gate.AudienceLedger, a *dibs.Audience, f func(user string) error) error {
	return eachPart(ctx, store, a, func(_ int, raw []byte) (n int64, err error) {
		err = unpackUsers(raw, func(user string) error {
			n++
			return f(user)
		})
		return n, err
	})
}

// eachPart calls do for the parts of a version of a list; do returns how many users a part has.
func eachPart(ctx context.Context, store gate.AudienceLedger, a *dibs.Audience, do func(part int, raw []byte) (users int64, err error)) error {
	var seen int64
	for part := 0; seen < a.Users; part++ {
		raw, err := store.AudiencePart(ctx, a.ID, a.Version, part)
		if err != nil {
			return err
		}
		users, err := do(part, raw)
		if err != nil {
			return err
		}
		seen += users
	}
	return nil
}
