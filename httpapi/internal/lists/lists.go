// Package lists serves the closed lists of lotteries from files.
package lists

import (
	"bufio"
	"container/list"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/faults"
	"github.com/dibs-dev/dibs/internal/web"
)

const (
	// maxLists is how many closed lists a node reads from the ledger at the same time.
	maxLists = 4
	// keptLists is how many closed lists a node keeps as files, those asked for last.
	keptLists = 16
	// listsPerAddress is how many lists one address receives at the same time, or one /64 of IPv6, a /48 eight times as
	// many, and maxReceivers how many all do.
	listsPerAddress = 16
	maxReceivers    = 1024
)

// ErrMany refuses a list while too many others are read, or received by one address.
var ErrMany = faults.Busy(5*time.Second, dibs.Text{EN: "too many lists of entries are being read", ZH: "正在读取名单的请求过多"})

// Lists has the closed lists of lotteries as files, which never change. A list is read
// from the ledger once, however many ask for it, and no reader that is slow keeps the
// ledger or another reader waiting.
//
// mu guards the fields below it. A list is in kept and in order from the moment on that it
// is being read; its file is closed when it is in neither and has no readers left.
type Lists struct {
	reading chan struct{}

	mu        sync.Mutex
	kept      map[string]*List
	order     *list.List // of hashes, the one asked for last in front
	receivers web.AddressCounts
	// receiving is how many receive a list, at all addresses.
	receiving int
}

// List is one closed list. ready is closed when File and Size, or err, are known;
// Lists.mu guards readers, at and dropped.
type List struct {
	ready chan struct{}
	File  *os.File
	Size  int64
	err   error

	at      *list.Element
	readers int
	dropped bool
}

// New returns no lists yet.
func New() *Lists {
	return &Lists{
		reading: make(chan struct{}, maxLists), kept: map[string]*List{}, order: list.New(),
	}
}

// Enter counts a receiver at an address, unless there are too many there, or in all: Leave takes it back.
// Addresses of this machine, as a proxy that is not trusted has, are bounded in all only.
func (l *Lists) Enter(at netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.receiving >= maxReceivers || !l.receivers.Enter(at, listsPerAddress) {
		return false
	}
	l.receiving++
	return true
}

// Leave takes a receiver off an address.
func (l *Lists) Leave(at netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.receiving--
	l.receivers.Leave(at)
}

// Open returns a closed list by its hash, and reads it with write where it is not kept.
// The caller calls done when it needs the list no longer. ErrMany when too many
// others are being read.
func (l *Lists) Open(ctx context.Context, hash string, write func(context.Context, io.Writer) error) (of *List, done func(), err error) {
	l.mu.Lock()
	of, ok := l.kept[hash]
	if ok {
		l.order.MoveToFront(of.at)
	} else {
		select {
		case l.reading <- struct{}{}:
		default:
			l.mu.Unlock()
			return nil, nil, ErrMany
		}
		of = &List{ready: make(chan struct{}), at: l.order.PushFront(hash)}
		l.kept[hash] = of
		// The reading goes on when the one that asked first leaves: others wait for it.
		go l.read(context.WithoutCancel(ctx), hash, of, write)
		if l.order.Len() > keptLists {
			l.drop(l.order.Back().Value.(string))
		}
	}
	of.readers++
	l.mu.Unlock()
	select {
	case <-of.ready:
		err = of.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		l.close(of)
		return nil, nil, err
	}
	return of, func() { l.close(of) }, nil
}

// read reads a list from the ledger into a file that has no name.
func (l *Lists) read(ctx context.Context, hash string, of *List, write func(context.Context, io.Writer) error) {
	defer func() { <-l.reading }()
	file, err := os.CreateTemp("", "dibs-list-")
	if err == nil {
		// Where a file that is open cannot be removed, close removes it.
		_ = os.Remove(file.Name())
		out := bufio.NewWriter(file)
		if err = write(ctx, out); err == nil {
			err = out.Flush()
		}
		if err == nil {
			of.Size, err = file.Seek(0, io.SeekCurrent)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && !errors.As(err, new(*dibs.Error)) {
		err = dibs.Unavail(dibs.EffectNone, err)
	}
	of.File, of.err = file, err
	close(of.ready)
	if err != nil && l.kept[hash] == of {
		l.drop(hash)
	}
	l.free(of)
}

// drop forgets a list; mu is held.
func (l *Lists) drop(hash string) {
	of := l.kept[hash]
	delete(l.kept, hash)
	l.order.Remove(of.at)
	of.dropped = true
	l.free(of)
}

// close takes a reader off a list.
func (l *Lists) close(of *List) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of.readers--
	l.free(of)
}

// free closes the file of a list that is dropped and read by none; mu is held.
func (l *Lists) free(of *List) {
	if of.dropped && of.readers == 0 && of.File != nil {
		name := of.File.Name()
		// The file was only read since it was written.
		_ = of.File.Close()
		_ = os.Remove(name)
		of.File = nil
	}
}
