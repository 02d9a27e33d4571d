package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/httpapi"

	"github.com/dibs-dev/dibs/gate"
)

// slowLists is a lottery whose list is read when it is let go.
type slowLists struct {
	gate.Lotteries
	hash          string
	text          []byte
	reached, free chan struct{}
}

func (s *slowLists) Lottery(context.Context, *dibs.Campaign) (gate.LotteryView, error) {
	return gate.LotteryView{ListHash: s.hash}, nil
}

func (s *slowLists) WriteEntries(_ context.Context, _ *dibs.Campaign, w io.Writer) error {
	s.reached <- struct{}{}
	<-s.free
	_, err := w.Write(s.text)
	return err
}

const listPath = "/v1/campaigns/draw/lottery/entries"

// serveLists serves a campaign with the lottery.
func serveLists(t *testing.T, lists *slowLists) *stack {
	t.Helper()
	svc := newService(t)
	h, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(svc), JWTSecret: []byte(jwtSecret), Lotteries: lists})
	must(t, err)
	units, now := int64(5), time.Now()
	_, err = svc.Campaigns.Create(t.Context(), dibs.CampaignSpec{
		ID: "draw", Kind: dibs.Sale, Title: "T", StartsAt: now.Add(time.Hour), EndsAt: now.Add(2 * time.Hour), Stock: dibs.StockSpec{Units: &units},
		Gate: &dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.Lottery, RegistrationClosesAt: now.Add(time.Minute)}},
	})
	must(t, err)
	_, err = svc.Campaigns.Publish(t.Context(), "draw")
	must(t, err)
	return serve(t, svc, h)
}

// Anyone may ask for a closed list: it is read from the ledger once, and not at all for a
// client that has it. Only some lists are read at a time.
func TestListsAreReadOnce(t *testing.T) {
	lists := &slowLists{hash: "5e5e", text: []byte("an entry\n"), reached: make(chan struct{}, 10), free: make(chan struct{})}
	s := serveLists(t, lists)
	const many = 40
	answers := make(chan answer, many)
	var all sync.WaitGroup
	defer all.Wait()
	let := sync.OnceFunc(func() { close(lists.free) })
	defer let()
	for range many {
		all.Go(func() { answers <- s.ask("GET", listPath, "") })
	}
	<-lists.reached
	if a := s.ask("GET", listPath, "", `If-None-Match: "5e5e"`); a.status != 304 || a.body != "" {
		t.Errorf("who has it: %d %s", a.status, a.body)
	}
	let()
	for range many {
		if a := <-answers; a.status != 200 || a.body != "an entry\n" || a.header.Get("ETag") != `"5e5e"` {
			t.Errorf("%d %s %v", a.status, a.body, a.header)
		}
	}
	if n := len(lists.reached); n != 0 {
		t.Errorf("the list was read %d times more", n)
	}
}

// smallBuffers bounds what the kernel takes of an answer before its reader reads.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		err = errors.Join(err, tcp.SetWriteBuffer(16<<10))
	}
	return conn, err
}

// A thousand clients that ask for a list and read nothing of it keep nobody from reading
// it, and are cut.
func TestSilentReaders(t *testing.T) {
	lists := &slowLists{hash: "5e5e", text: bytes.Repeat([]byte("an entry\n"), 100_000), reached: make(chan struct{}, 10), free: make(chan struct{})}
	close(lists.free)
	whole := serveLists(t, lists)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var cut atomic.Int64
	server := &http.Server{Handler: whole.handler, ReadHeaderTimeout: time.Minute, WriteTimeout: 5 * time.Minute, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			cut.Add(1)
		}
	}}
	go func() { _ = server.Serve(smallBuffers{plain}) }()
	t.Cleanup(func() { must(t, server.Close()) })

	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
	}}
	silent := make([]net.Conn, 1000)
	for i := range silent {
		silent[i], err = dialer.DialContext(t.Context(), "tcp", plain.Addr().String())
		must(t, err)
		defer silent[i].Close()
		_, err = io.WriteString(silent[i], "GET "+listPath+" HTTP/1.1\r\nHost: x\r\n\r\n")
		must(t, err)
	}
	for range 5 {
		resp, err := http.Get("http://" + plain.Addr().String() + listPath)
		must(t, err)
		text, err := io.ReadAll(resp.Body)
		must(t, errors.Join(err, resp.Body.Close()))
		if resp.StatusCode != 200 || len(text) != len(lists.text) {
			t.Fatalf("beside silent readers: %d, %d bytes", resp.StatusCode, len(text))
		}
	}
	waitFor(t, func() bool { return cut.Load() >= int64(len(silent)) })
}

func TestALotteryOverHTTP(t *testing.T) {
	s := newGated(t)
	ctx := t.Context()
	closes := time.Now().Add(30 * time.Minute)
	s.gated("draw", time.Hour, dibs.GateSpec{Room: &dibs.RoomSpec{
		Mode: dibs.Lottery, Winners: 1, RegistrationClosesAt: closes, PublicValue: "a number",
	}})
	users := []*client.Client{s.admin.WithToken("dev_ann"), s.admin.WithToken("dev_bob")}
	for _, u := range users {
		first, err := u.Lotteries.Register(ctx, "draw")
		must(t, err)
		again, err := u.Lotteries.Register(ctx, "draw")
		if err != nil || again != first || first.Result != gate.LotteryPending {
			t.Fatalf("%+v, %+v, %v", first, again, err)
		}
	}
	_, err := users[0].Lotteries.Entries(ctx, "draw")
	wants(t, err, "invalid_state", "once registration is closed")
	before, err := users[0].Lotteries.Get(ctx, "draw")
	if err != nil || before.State != gate.LotteryOpen || before.SeedHash == "" || before.Seed != "" {
		t.Fatalf("%+v, %v", before, err)
	}
	s.ahead.Store(int64(30 * time.Minute))
	waitFor(t, func() bool {
		v, err := users[0].Lotteries.Get(ctx, "draw")
		must(t, err)
		return v.ListHash != ""
	})
	_, err = s.admin.Lotteries.TellPublicValue(ctx, "draw", "7")
	must(t, err)
	waitFor(t, func() bool {
		v, err := users[0].Lotteries.Get(ctx, "draw")
		must(t, err)
		return v.State == gate.LotteryDrawn
	})
	list, err := users[0].Lotteries.Entries(ctx, "draw")
	must(t, err)
	text, err := io.ReadAll(list)
	must(t, err)
	must(t, list.Close())
	if len(text) != 2*65 {
		t.Errorf("the list is %q", text)
	}
	results := map[gate.LotteryResult]int{}
	for _, u := range users {
		v, err := u.Lotteries.Result(ctx, "draw")
		must(t, err)
		results[v.Result]++
	}
	if results[gate.LotteryWon] != 1 || results[gate.LotteryLost] != 1 {
		t.Errorf("results %v", results)
	}
}
