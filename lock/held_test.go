package lock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/lock"
)

// They make the test binary open a locker of a kind, there, with a lifetime,
// take the lock "child", tell its fence, and tell when it is lost.
const childKind, childAt, childLife = "LOCK_TEST_KIND", "LOCK_TEST_AT", "LOCK_TEST_LIFE"

func child() error {
	life, err := time.ParseDuration(os.Getenv(childLife))
	if err != nil {
		return err
	}
	l, err := openKind(os.Getenv(childKind), strings.Split(os.Getenv(childAt), ","), life)
	if err != nil {
		return err
	}
	fmt.Println(0)
	h, err := l.Lock(context.Background(), "child", lock.Options{})
	if err != nil {
		return err
	}
	fmt.Println(h.Fence())
	<-h.Context().Done()
	fmt.Println(errors.Is(context.Cause(h.Context()), lock.ErrLost))
	return nil
}

// process is one that has the lock, or waits for it.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Reader
}

// start starts a process that is about to ask for the lock.
func (k *kind) start(t *testing.T, life time.Duration) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), childKind+"="+k.name, childAt+"="+strings.Join(k.at, ","), childLife+"="+life.String())
	p.cmd.Stderr = os.Stderr
	pipe, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	t.Cleanup(func() {
		// It may have ended before.
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	p.out = bufio.NewReader(pipe)
	if p.line() != "0" {
		t.Fatal("the process does not begin")
	}
	return p
}

func (p *process) line() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	must(p.t, err)
	return strings.TrimSpace(line)
}

// fence waits until the process has the lock.
func (p *process) fence() uint64 {
	p.t.Helper()
	fence, err := strconv.ParseUint(p.line(), 10, 64)
	must(p.t, err)
	return fence
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	must(p.t, p.cmd.Process.Signal(s))
	if s != syscall.SIGSTOP {
		return
	}
	// It goes on for a moment.
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if !errors.Is(err, syscall.EINTR) {
			must(p.t, err)
		}
		if err == nil && status.Stopped() {
			return
		}
	}
}

var all = []string{redis, majority, mariadb, postgres, zookeeper}

// mortal are those whose locks have a lifetime.
var mortal = []string{redis, majority, zookeeper}

// TestKilledHolder kills the process that has the lock: it is free, at once or
// when its lifetime is over, and the next fence is higher.
func TestKilledHolder(t *testing.T) {
	eachKind(t, all, func(t *testing.T, k *kind) {
		ctx := patient(t)
		l := k.open(t, long)
		p := k.start(t, 4*short)
		fence := p.fence()
		p.signal(syscall.SIGKILL)
		h, err := l.Lock(ctx, "child", lock.Options{})
		must(t, err)
		if h.Fence() <= fence {
			t.Errorf("the fence %d comes after %d", h.Fence(), fence)
		}
		must(t, h.Unlock(ctx))
	})
}

// TestPausedHolder stops the process that has the lock: somebody else gets it,
// and the first one, when it goes on, is told that it has lost it. The fence would
// refuse its writes in between.
func TestPausedHolder(t *testing.T) {
	eachKind(t, mortal, func(t *testing.T, k *kind) {
		ctx := patient(t)
		l := k.open(t, long)
		p := k.start(t, 4*short)
		fence := p.fence()
		p.signal(syscall.SIGSTOP)
		h, err := l.Lock(ctx, "child", lock.Options{})
		must(t, err)
		store := fenced{}
		if !store.write(h.Fence()) || store.write(fence) {
			t.Errorf("a store that compares fences takes %d after %d", fence, h.Fence())
		}
		p.signal(syscall.SIGCONT)
		if line := p.line(); line != "true" {
			t.Errorf("the paused holder was told %q", line)
		}
		must(t, h.Unlock(ctx))
		_, err = io.Copy(io.Discard, p.out)
		must(t, err)
	})
}

// TestPausedHolderKeeps stops the process that has a lock on a database, which
// keeps it for as long as the connection is there.
func TestPausedHolderKeeps(t *testing.T) {
	eachKind(t, []string{mariadb, postgres}, func(t *testing.T, k *kind) {
		ctx := patient(t)
		l := k.open(t, 0)
		p := k.start(t, short)
		p.fence()
		p.signal(syscall.SIGSTOP)
		if _, err := l.Lock(ctx, "child", lock.Options{Wait: short}); !errors.Is(err, lock.ErrBusy) {
			t.Errorf("while its holder is paused, the lock is %v", err)
		}
		p.signal(syscall.SIGKILL)
		h, err := l.Lock(ctx, "child", lock.Options{})
		must(t, err)
		must(t, h.Unlock(ctx))
	})
}

// TestPausedWaiter stops the process that is next in line: it is passed over,
// and gets the lock after the one behind it when it goes on.
func TestPausedWaiter(t *testing.T) {
	eachKind(t, mortal, func(t *testing.T, k *kind) {
		ctx := patient(t)
		// Redis gives a tenth of it to who is handed the lock.
		l := k.open(t, 20*time.Second)
		h, err := l.Lock(ctx, "child", lock.Options{})
		must(t, err)
		p := k.start(t, short)
		if k.name != majority {
			k.inLine(ctx, t, "child", 1)
		}
		p.signal(syscall.SIGSTOP)
		behind := make(chan lock.Held)
		go func() {
			h, err := l.Lock(ctx, "child", lock.Options{})
			if err != nil {
				t.Error(err)
			}
			behind <- h
		}()
		must(t, h.Unlock(ctx))
		next := <-behind
		if next == nil {
			return
		}
		p.signal(syscall.SIGCONT)
		must(t, next.Unlock(ctx))
		if fence := p.fence(); fence <= next.Fence() {
			t.Errorf("the fence %d comes after %d", fence, next.Fence())
		}
	})
}

// TestLateAnswer stops the process that is next in line while it waits for an
// answer of Redis, for longer than it waits for answers: it asks once more.
func TestLateAnswer(t *testing.T) {
	eachKind(t, []string{redis}, func(t *testing.T, k *kind) {
		ctx := patient(t)
		l := k.open(t, long)
		h, err := l.Lock(ctx, "child", lock.Options{})
		must(t, err)
		life := 3 * time.Second
		p := k.start(t, life)
		k.inLine(ctx, t, "child", 1)
		must(t, theRedis.Freeze())
		// By then it has asked again.
		<-time.After(life / 2)
		p.signal(syscall.SIGSTOP)
		<-time.After(life)
		p.signal(syscall.SIGCONT)
		// By then the time of its question is over.
		<-time.After(life / 10)
		must(t, theRedis.Thaw())
		must(t, h.Unlock(ctx))
		if fence := p.fence(); fence <= h.Fence() {
			t.Errorf("the fence %d comes after %d", fence, h.Fence())
		}
	})
}
