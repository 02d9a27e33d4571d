package audience

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/dibs-dev/dibs"
)

// Set is a set of users. It does not change, and is safe for concurrent use.
type Set struct {
	p *printer
	n int64
	// place is how many leading bits say in which bucket a print is; buckets has
	// where each begins.
	place   int
	buckets []uint32
	// rest has the other bits of each print, in order, width bytes each.
	width int
	rest  []byte
	// ids has the long ids, each where its print is, stride bytes each with zeroes
	// behind; nil when all are short.
	ids    *os.File
	stride int64
}

// Len is how many users there are.
func (s *Set) Len() int64 { return s.n }

// Bytes is how much memory the set takes.
func (s *Set) Bytes() int { return len(s.rest) + 4*len(s.buckets) }

// Close lets go of the file of long ids.
func (s *Set) Close() error {
	if s.ids == nil {
		return nil
	}
	return s.ids.Close()
}

// Has reports whether a user is in the set. The error is about the file of long
// ids.
func (s *Set) Has(user string) (bool, error) {
	print, alone := s.p.of(user)
	bucket := print >> (64 - s.place)
	from, to := int(s.buckets[bucket]), int(s.buckets[bucket+1])
	want := print << s.place >> s.place
	i := from
	if to-from > 64 {
		i += sort.Search(to-from, func(k int) bool { return s.at(from+k) >= want })
	}
	for ; i < to; i++ {
		got := s.at(i)
		if got < want {
			continue
		}
		if got > want {
			return false, nil
		}
		if alone {
			// No other id has this print.
			return true, nil
		}
		if is, err := s.isAt(i, user); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// at is what is kept of the i-th print.
func (s *Set) at(i int) uint64 {
	// One load, of which the first bytes count; the last ones have room behind.
	return binary.BigEndian.Uint64(s.rest[i*s.width:]) >> (64 - 8*s.width)
}

// isAt reports whether the i-th user is this one.
func (s *Set) isAt(i int, user string) (bool, error) {
	if s.ids == nil || int64(len(user)) > s.stride {
		return false, nil
	}
	var room [dibs.MaxIDLen]byte
	b := room[:s.stride]
	if _, err := s.ids.ReadAt(b, int64(i)*s.stride); err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("audience: reading the file of ids: %w", err)
	}
	return string(b[:len(user)]) == user && (len(user) == len(b) || b[len(user)] == 0), nil
}

// setBuilder makes a set of users that come in the order of their prints.
type setBuilder struct {
	s    *Set
	last uint64
	// pending are bytes of the file that are not written yet.
	pending []byte
	from    int64
}

// newSetBuilder begins a set of n users with ids of longest characters at most.
func newSetBuilder(p *printer, n int64, longest int) *setBuilder {
	s := &Set{p: p, place: placeBits(n), stride: int64(longest)}
	s.width = (64 - s.place + 7) / 8
	s.rest = make([]byte, 0, n*int64(s.width)+8)
	s.buckets = make([]uint32, 1<<s.place+1)
	return &setBuilder{s: s}
}

var errOrder = fmt.Errorf("%w: a list of users is not in order", dibs.ErrCorrupt)

// add takes the next user.
func (b *setBuilder) add(user string) error {
	s := b.s
	print, alone := s.p.of(user)
	if print < b.last {
		return errOrder
	}
	b.last = print
	for shift := 8 * (s.width - 1); shift >= 0; shift -= 8 {
		s.rest = append(s.rest, byte(print<<s.place>>s.place>>shift))
	}
	s.buckets[print>>(64-s.place)+1]++
	if !alone {
		if err := b.keep(user); err != nil {
			return err
		}
	}
	s.n++
	return nil
}

const (
	// flushAt is how much of the file is gathered before it is written, maxGap the
	// longest hole in it that is written as zeroes.
	flushAt = 1 << 20
	maxGap  = 4 << 10
)

// keep writes a long id at the user's place of the file.
func (b *setBuilder) keep(user string) error {
	s := b.s
	if s.ids == nil {
		f, err := os.CreateTemp("", "dibs-audience-")
		if err != nil {
			return fmt.Errorf("audience: making the file of ids: %w", err)
		}
		// It lives for as long as somebody has it open.
		s.ids = f
		if err := os.Remove(f.Name()); err != nil {
			return fmt.Errorf("audience: making the file of ids: %w", err)
		}
	}
	if s.n*s.stride-b.from-int64(len(b.pending)) > maxGap {
		// What lies between is never written.
		if err := b.flush(); err != nil {
			return err
		}
	}
	if len(b.pending) == 0 {
		b.from = s.n * s.stride
	}
	for gap := s.n*s.stride - b.from - int64(len(b.pending)); gap > 0; gap-- {
		b.pending = append(b.pending, 0)
	}
	b.pending = append(b.pending, user...)
	if len(b.pending) >= flushAt {
		return b.flush()
	}
	return nil
}

func (b *setBuilder) flush() error {
	if len(b.pending) == 0 {
		return nil
	}
	_, err := b.s.ids.WriteAt(b.pending, b.from)
	b.pending = b.pending[:0]
	if err != nil {
		return fmt.Errorf("audience: writing the file of ids: %w", err)
	}
	return nil
}

// done returns the set; on an error there is nothing left of it.
func (b *setBuilder) done(err error) (*Set, error) {
	if err == nil {
		err = b.flush()
	}
	if err != nil {
		return nil, errors.Join(err, b.s.Close())
	}
	b.s.rest = append(b.s.rest, make([]byte, 8)...)
	for i := 1; i < len(b.s.buckets); i++ {
		b.s.buckets[i] += b.s.buckets[i-1]
	}
	return b.s, nil
}
