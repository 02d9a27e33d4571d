package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/memory"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/node"
)

// serverEnv is the environment variable that names the handler that a process of this program
// serves, instead of measuring: bare-granted, bare-refused, bare-view, dibs, gateway, or gate- with
// a kind of gate.
const serverEnv = "DIBS_BENCH_SERVER"

// serverProfileEnv names a file for the CPU profile of that process. Each server that is started
// writes the file anew, so choose with -only what to look at.
const serverProfileEnv = "DIBS_BENCH_SERVER_PROFILE"

const (
	// secret signs the tokens by HS256, and connections is how many connections claim at once, each
	// one claim at a time: enough that the server is never idle on the CPUs that it has.
	secret      = "a secret of the benchmark, 32 bytes"
	connections = 64
	// pressers is how many users the refused claims come from: a crowd presses again and again, so
	// their tokens come back and the server has verified most of them before.
	// The other line of the table, with new users only, shows what that saves.
	pressers = 2000
)

// serve is the server's process: it prints its address, and answers /cpu with the CPU time that it
// has used once everything is settled, in nanoseconds. So the CPU of a grant includes its settling,
// even of what was granted just before. The process ends when its standard input closes.
func serve(kind string) error {
	ctx := context.Background()
	finish, err := profile(os.Getenv(serverProfileEnv))
	if err != nil {
		return err
	}
	defer finish()
	// As in dibs serve, and the bare handlers get it too: a yardstick that collects garbage more
	// often would flatter dibs.
	go memory.Ease(ctx)
	s, err := servingOf(ctx, kind)
	if err != nil {
		return err
	}
	defer s.discard()
	server := s.server
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := func() int64 { return int64(cpuTime()) }
		switch r.URL.Path {
		case "/cpu":
		case "/resident":
			number = resident
		case "/used":
			number = used
		default:
			s.inner.ServeHTTP(w, r)
			return
		}
		if err := s.settled(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprint(w, number())
	})
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		// The parent's end of the pipe closes when it is done or dead.
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	if err := server.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// serving is what the server's process serves. settled returns when nothing waits to be settled;
// discard ends it and removes its folder.
type serving struct {
	inner   http.Handler
	server  *http.Server
	settled func() error
	discard func()
}

// servingOf returns what a kind serves. The bare kinds have a plain http.Server, without the
// time-outs of dibs: they decide nothing and keep nothing.
func servingOf(ctx context.Context, kind string) (s serving, err error) {
	s = serving{inner: bareHandler(kind), server: &http.Server{}, settled: func() error { return nil }, discard: func() {}}
	switch {
	case kind == "bare-view":
		s.inner = bareView()
	case strings.HasPrefix(kind, gateKind):
		n, h, err := gateHandler(ctx, strings.TrimPrefix(kind, gateKind))
		if err != nil {
			return s, err
		}
		s.inner, s.server, s.discard = h, httpapi.NewServer("", h), n.discard
	case kind == "dibs" || kind == "gateway":
		return dibsServing(ctx, kind)
	}
	return s, nil
}

// dibsServing is a node with a campaign that grants and one that refuses.
func dibsServing(ctx context.Context, kind string) (s serving, err error) {
	n, err := openNode(ctx, node.Config{})
	if err != nil {
		return s, err
	}
	// After an error nobody else discards the node.
	defer func() {
		if err != nil {
			n.discard()
		}
	}()
	if err = n.campaign(ctx, "granted", 1_000_000_000, 1); err != nil {
		return s, err
	}
	if err = n.soldOut(ctx, "refused", 1, 1); err != nil {
		return s, err
	}
	s.settled, s.discard = func() error { _, err := n.settleRate(ctx); return err }, n.discard
	if kind == "gateway" {
		s.inner, err = gatewayHandler(n)
	} else {
		s.inner, err = httpapi.New(httpapi.Config{Services: httpapi.ServicesOf(n.Service), JWTSecret: []byte(secret)})
	}
	s.server = httpapi.NewServer("", s.inner)
	return s, err
}

// bareHandler is the yardstick over HTTP: it decodes a claim's body and answers JSON of the shape
// that dibs answers, by net/http and encoding/json, and decides nothing. It checks no token and
// routes nothing: token, routing, claim, journal and metrics are what the ratio shows. An answer
// with fewer fields than dibs sends would make the ratio too high; keep the two alike.
func bareHandler(kind string) http.HandlerFunc {
	price := api.ClaimView{
		ID: "7K3M9QX2B4TD6RWA", CampaignID: "granted", Kind: dibs.Sale, UserID: "u1234567", Quantity: 1,
		Status: "confirmed", StatusCode: 1, OrderType: dibs.FlashOrder, Items: []string{}, CreatedAt: time.Now().UTC(),
	}
	refusal := api.Problem{
		Type: "urn:dibs:problem:sold_out", Title: "Sold out", Status: 409, Detail: "Nothing is left.", Reason: "sold_out",
		Code: 30006, Retryable: true, RequestID: "ABCDEFGHIJKLM-1", Remaining: new(int64),
	}
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Quantity int64 `json:"quantity"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if kind == "bare-granted" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(&price)
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(&refusal)
	}
}

// remote is a server in a process of its own, so that its CPU is counted apart from that of the
// clients. in is the process's standard input: the process ends when it closes, also when this
// program is killed.
type remote struct {
	cmd  *exec.Cmd
	in   io.Closer
	addr string
}

// start starts a server of a kind and returns once it listens. The caller stops it.
func start(ctx context.Context, kind string) (*remote, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), serverEnv+"="+kind)
	cmd.Stderr = os.Stderr
	// The server reads this pipe until it closes, and then ends.
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the %s server did not start: %w", kind, err)
	}
	return &remote{cmd, in, strings.TrimSpace(line)}, nil
}

// stop ends the server and waits for it. How it ended does not matter: all figures were read.
func (r *remote) stop() {
	_ = r.in.Close()
	_ = r.cmd.Wait()
}

// cpu returns the server's CPU time since its start, user and system, in µs, once all is settled.
func (r *remote) cpu(ctx context.Context) (float64, error) {
	n, err := r.number(ctx, "/cpu")
	return float64(n) / 1e3, err
}

// number returns what the server answers at a path of its own: /cpu, /resident or /used.
func (r *remote) number(ctx context.Context, path string) (int64, error) {
	text, _, err := r.ask(ctx, path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// press sends one claim per token over a few connections and checks that each is answered with a
// status: a server that refuses for another reason does other work, and its figure would lie. The
// claims have no idempotency key. It writes requests as text, since the clients share the CPUs.
func (r *remote) press(ctx context.Context, campaign string, tokens []string, status int) error {
	want := []byte("HTTP/1.1 " + strconv.Itoa(status))
	return inParallel(ctx, connections, connections, func(ctx context.Context, w int) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.addr)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		in := bufio.NewReader(conn)
		for i := w; i < len(tokens); i += connections {
			// Each connection waits for its answer before it sends the next claim: no queue grows in
			// the server by the machine's load.
			_, err := fmt.Fprintf(conn, "POST /v1/campaigns/%s/claims HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n"+
				"Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"quantity\":1}", campaign, tokens[i])
			if err == nil {
				err = readAnswer(in, want)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// readAnswer reads one answer off the connection, and fails on another status than want, such as
// HTTP/1.1 201. The body is read to its end, since the next answer follows it.
func readAnswer(in *bufio.Reader, want []byte) error {
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if got := res.Proto + " " + strconv.Itoa(res.StatusCode); got != string(want) {
		return fmt.Errorf("answered %s: %s", got, body)
	}
	return res.Body.Close()
}

// overHTTP compares the CPU of a claim over HTTP with that of a bare handler: refused with tokens
// that come back, refused with new tokens only, and granted. CPU, because on shared cores the
// rate says how the clients and the server divide them. A round starts a new server of each kind
// and gives both the same tokens.
func overHTTP(ctx context.Context, o *options) error {
	claims := o.claims * 6 / 100
	fmt.Printf("| server CPU per request, %d connections | bare net/http | dibs | ratio |\n|---|---|---|---|\n", connections)
	for _, c := range []struct {
		name, campaign string
		status         int
		users          int
	}{
		// 409 is Conflict, sold out; 201 is Created, granted.
		{fmt.Sprintf("refused: sold out, %d users press again", pressers), "refused", 409, pressers},
		{"refused: sold out, every user new", "refused", 409, 0},
		{"granted: durable, settling included", "granted", 201, 0},
	} {
		var bare, full []float64
		for round := range o.rounds {
			// Tokens are signed here, before and outside of what is measured.
			tokens, err := tokensFor(round, claims, c.users)
			if err != nil {
				return err
			}
			for kind, cost := range map[string]*[]float64{"bare-" + c.campaign: &bare, "dibs": &full} {
				per, err := cpuPerClaim(ctx, kind, c.campaign, tokens, c.status)
				if err != nil {
					return err
				}
				*cost = append(*cost, per)
			}
		}
		a, b := median(bare), median(full)
		fmt.Printf("| %s | %.1f µs | %.1f µs | %.2f |\n", c.name, a, b, b/a)
	}
	return nil
}

// tokensFor returns a token for each claim: of users who come again and again, or, when users is
// 0, each of another user. Users differ from round to round.
func tokensFor(round, claims, users int) ([]string, error) {
	tokens := make([]string, claims)
	for i := range tokens {
		if users > 0 && i >= users {
			tokens[i] = tokens[i%users]
			continue
		}
		t, err := httpapi.IssueToken([]byte(secret), fmt.Sprintf("r%d-%d", round, scatter(i)), time.Hour)
		if err != nil {
			return nil, err
		}
		tokens[i] = t
	}
	return tokens, nil
}

// cpuPerClaim starts a server and returns its CPU per claim, in microseconds. The first tenth of
// the tokens only warms it up: connections, heap, and the tokens of the users who come again.
func cpuPerClaim(ctx context.Context, kind, campaign string, tokens []string, status int) (float64, error) {
	r, err := start(ctx, kind)
	if err != nil {
		return 0, err
	}
	defer r.stop()
	// All of the users who come again are within the first tenth.
	warm := len(tokens) / 10
	if err := r.press(ctx, campaign, tokens[:warm], status); err != nil {
		return 0, fmt.Errorf("%s: %w", kind, err)
	}
	cpu, err := rise(ctx, r.cpu, func() error { return r.press(ctx, campaign, tokens[warm:], status) })
	if err != nil {
		return 0, fmt.Errorf("%s: %w", kind, err)
	}
	return cpu / float64(len(tokens)-warm), nil
}
