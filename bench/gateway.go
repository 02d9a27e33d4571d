package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gateway"
	"github.com/dibs-dev/dibs/httpapi"
)

const (
	// sockets is how many WebSockets are open at once, each of another user. It is enough that
	// what a node needs anyway, divided by it, does not show in the memory of one.
	sockets = 10_000
	// viewEnv is the environment variable with the answer that the bare handler of views gives:
	// the lines of its header, a blank line, its body. views is how many views a round has.
	viewEnv = "DIBS_BENCH_VIEW"
	views   = 60_000
)

// gatewayHandler is dibs with long-lived connections, and what the measurement asks of it besides:
// /memory tells its memory and goroutines, /pause and /resume change the campaign. The heartbeat
// is an hour, so that no connection receives one while its memory is read.
func gatewayHandler(n *benchNode) (http.Handler, error) {
	hub, err := gateway.Open(n.Node, gateway.Config{Heartbeat: time.Hour})
	if err != nil {
		return nil, err
	}
	api, err := httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(n.Service), JWTSecret: []byte(secret), AllowDevTokens: true, Gateway: hub})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("/memory", func(w http.ResponseWriter, _ *http.Request) {
		// This collects the garbage and returns free pages to the system. Without it the resident
		// memory would include what the opening of the connections left behind.
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		_, _ = fmt.Fprint(w, m.HeapInuse+m.StackInuse, " ", resident(), " ", runtime.NumGoroutine())
	})
	for path, do := range map[string]func(context.Context, string) (*dibs.Campaign, error){"/pause": n.Service.Campaigns.Pause, "/resume": n.Service.Campaigns.Resume} {
		mux.HandleFunc(path, func(_ http.ResponseWriter, r *http.Request) {
			if _, err := do(r.Context(), "granted"); err != nil {
				panic(err)
			}
		})
	}
	return mux, nil
}

// resident is the process's resident memory in bytes, as Linux counts it; 0 on other systems.
func resident() int64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	// A text that is no number counts as 0.
	pages, _ := strconv.ParseInt(strings.Fields(string(raw))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// bareView answers every request with the same header and body, and decides nothing: the yardstick
// for a view. It has the header of dibs too, since writing it is a part of the cost.
func bareView() http.HandlerFunc {
	head, body, _ := strings.Cut(os.Getenv(viewEnv), "\n\n")
	header := http.Header{}
	for line := range strings.Lines(head) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		header.Set(name, value)
	}
	raw := []byte(body)
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		for name, values := range header {
			h[name] = values
		}
		_, _ = w.Write(raw)
	}
}

// ask asks the server for a text, over a connection that is not kept.
func (r *remote) ask(ctx context.Context, path string) (string, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.addr+path, nil)
	if err != nil {
		return "", nil, err
	}
	res, err := (&http.Client{}).Do(req)
	if err != nil {
		return "", nil, err
	}
	raw, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %s", path, res.Status, raw)
	}
	return string(raw), res.Header, err
}

// overGateway measures WebSockets (memory of an idle one, time until all receive a change), and the
// CPU of a campaign's view beside a bare handler that sends the same bytes.
func overGateway(ctx context.Context, o *options) error {
	fmt.Println("| WebSockets of one node | |\n|---|---|")
	if err := idleSockets(ctx, o); err != nil {
		return err
	}
	return viewCost(ctx, o)
}

// idleSockets opens the connections and measures what an idle one takes in the server's process:
// heap and stacks in use by Go's count, resident memory, goroutines. The kernel's buffers are in
// neither count, and TLS is not there. Then hearAll measures how soon all receive a change.
func idleSockets(ctx context.Context, o *options) error {
	r, err := start(ctx, "gateway")
	if err != nil {
		return err
	}
	defer r.stop()
	memory := func() (n [3]int64, err error) {
		text, _, err := r.ask(ctx, "/memory")
		if err != nil {
			return n, err
		}
		_, err = fmt.Sscan(text, &n[0], &n[1], &n[2])
		return n, err
	}
	// The first connection creates what all share, such as the hub's view of the campaign. It is
	// opened before the first look at the memory, so that this is not divided among the others.
	warm, err := openSocket(ctx, r.addr, "warm")
	if err != nil {
		return err
	}
	defer func() { _ = warm.conn.Close() }()
	before, err := memory()
	if err != nil {
		return err
	}
	// The array and the buffers of the sockets are in this process, not in the server's memory.
	all := make([]*socket, sockets)
	defer func() {
		for _, s := range all {
			if s != nil {
				_ = s.conn.Close()
			}
		}
	}()
	if err := inParallel(ctx, 64, sockets, func(_ context.Context, i int) (err error) {
		all[i], err = openSocket(ctx, r.addr, "u"+strconv.Itoa(i))
		return err
	}); err != nil {
		return err
	}
	after, err := memory()
	if err != nil {
		return err
	}
	fmt.Printf("| memory of an idle one, by the Go runtime (heap and stacks in use) | %.1f KiB |\n", float64(after[0]-before[0])/sockets/1024)
	fmt.Printf("| the same, resident | %.1f KiB |\n", float64(after[1]-before[1])/sockets/1024)
	fmt.Printf("| goroutines of an idle one | %.2f |\n", float64(after[2]-before[2])/sockets)
	return hearAll(ctx, o, r, all)
}

// hearAll pauses and resumes a campaign, and prints how long it takes until every connection has
// received it, from the call on. The readers are goroutines of this process on the same CPUs, so
// the figure includes reading ten thousand frames; it depends on the load of the machine.
func hearAll(ctx context.Context, o *options, r *remote, all []*socket) error {
	var took []float64
	for range o.rounds {
		for _, step := range [][2]string{{"/pause", `"phase":"paused"`}, {"/resume", `"phase":"open"`}} {
			var heard errgroup.Group
			for _, s := range all {
				heard.Go(func() error { return s.until(step[1]) })
			}
			begun := time.Now()
			if _, _, err := r.ask(ctx, step[0]); err != nil {
				return err
			}
			// ask has returned by now, so the figure ends with the call's answer or with the last
			// connection, whichever is later.
			if err := heard.Wait(); err != nil {
				return err
			}
			took = append(took, time.Since(begun).Seconds()*1e3)
		}
	}
	// median sorts, so the last value is the greatest.
	fmt.Printf("| a change, from the call to the last of %d connections | %.0f ms (worst of %d: %.0f ms) |\n",
		len(all), median(took), len(took), took[len(took)-1])
	return nil
}

// viewCost compares the CPU of a campaign's view with that of a handler that sends the same bytes.
// Views are what users poll before a sale begins, and most requests of a rush are views. Each
// round copies the header and body that dibs has just sent, so the bare handler never sends less.
func viewCost(ctx context.Context, o *options) error {
	var bare, full []float64
	for range o.rounds {
		var view strings.Builder
		// One request before the measurement learns the answer that the bare handler will send.
		per, err := costOfViews(ctx, "gateway", func(r *remote) error {
			body, header, err := r.ask(ctx, "/v1/campaigns/granted")
			for _, name := range []string{"Content-Type", "Etag", "Vary", "Cache-Control", "Content-Length", "X-Content-Type-Options", "X-Request-Id"} {
				view.WriteString(name + ": " + header.Get(name) + "\n")
			}
			view.WriteString("\n" + body)
			return err
		})
		if err != nil {
			return err
		}
		full = append(full, per)
		if err := os.Setenv(viewEnv, view.String()); err != nil {
			return err
		}
		if per, err = costOfViews(ctx, "bare-view", func(*remote) error { return nil }); err != nil {
			return err
		}
		bare = append(bare, per)
	}
	a, b := median(bare), median(full)
	fmt.Printf("\n| server CPU per request, %d connections | bare net/http | dibs | ratio |\n|---|---|---|---|\n", connections)
	fmt.Printf("| a campaign's view, the same bytes | %.1f µs | %.1f µs | %.2f |\n", a, b, b/a)
	return nil
}

// costOfViews starts a server, and measures its views when first is done.
func costOfViews(ctx context.Context, kind string, first func(*remote) error) (float64, error) {
	r, err := start(ctx, kind)
	if err != nil {
		return 0, err
	}
	defer r.stop()
	if err := first(r); err != nil {
		return 0, err
	}
	return r.cpuPerView(ctx)
}

// cpuPerView returns the server's CPU per view, in microseconds. A tenth of the views goes before,
// uncounted: the first requests grow the heap, open the connections and fill the page cache.
func (r *remote) cpuPerView(ctx context.Context) (float64, error) {
	if err := r.fetch(ctx, views/10); err != nil {
		return 0, err
	}
	cpu, err := rise(ctx, r.cpu, func() error { return r.fetch(ctx, views) })
	return cpu / views, err
}

// fetch reads the view n times over a few connections, one request at a time on each. It writes the
// request as text: http.Client would use more CPU than the server that it shares the machine with.
func (r *remote) fetch(ctx context.Context, n int) error {
	return inParallel(ctx, connections, connections, func(ctx context.Context, _ int) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.addr)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		in := bufio.NewReader(conn)
		for range n / connections {
			if _, err := io.WriteString(conn, "GET /v1/campaigns/granted HTTP/1.1\r\nHost: bench\r\n\r\n"); err != nil {
				return err
			}
			if err := readAnswer(in, []byte("HTTP/1.1 200")); err != nil {
				return err
			}
		}
		return nil
	})
}

// socket is a WebSocket without a library: it speaks as much of the protocol as this part needs,
// and a small buffer is all that it takes. Ten thousand clients of a library would take memory and
// CPU from the server that is measured. One goroutine reads a socket at a time.
type socket struct {
	conn net.Conn
	in   *bufio.Reader
}

// openSocket opens a WebSocket as a user, subscribes to the campaign, and returns when the server
// has confirmed both. Messages are below 126 bytes, so their length fits one byte of the frame.
func openSocket(ctx context.Context, addr, user string) (*socket, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &socket{conn: conn, in: bufio.NewReaderSize(conn, 512)}
	_, err = io.WriteString(conn, "GET /v1/ws HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	for err == nil {
		var line string
		if line, err = s.in.ReadString('\n'); line == "\r\n" {
			break
		}
	}
	for _, step := range [][2]string{
		{`{"type":"auth","token":"dev_` + user + `"}`, `"welcome"`},
		{`{"type":"subscribe","campaign_id":"granted"}`, `"phase":"open"`},
	} {
		if err == nil {
			// Clients must mask what they send, with any mask. A mask of zeros leaves the text as
			// it is. 0x81 is a whole text message.
			_, err = conn.Write(append([]byte{0x81, 0x80 | byte(len(step[0])), 0, 0, 0, 0}, step[0]...))
		}
		if err == nil {
			err = s.until(step[1])
		}
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

// until reads frames until one is a whole text message that contains a word. It reads lengths of
// one or of three bytes, up to 64 KiB: the server sends nothing longer here.
func (s *socket) until(word string) error {
	for {
		var head [2]byte
		if _, err := io.ReadFull(s.in, head[:]); err != nil {
			return err
		}
		size := uint16(head[1])
		if size == 126 {
			if err := binary.Read(s.in, binary.BigEndian, &size); err != nil {
				return err
			}
		}
		raw := make([]byte, size)
		if _, err := io.ReadFull(s.in, raw); err != nil {
			return err
		}
		if head[0] == 0x81 && bytes.Contains(raw, []byte(word)) {
			return nil
		}
	}
}
