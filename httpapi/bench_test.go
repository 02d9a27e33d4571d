package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi"
)

// The benchmarks run their server in a process of its own, so that cpu-ns/op
// is the server's CPU time alone, whatever the client costs:
//
//	go test ./httpapi -run xxx -bench 'ClaimRefused|BareHandler' -benchtime 100000x -count 5
//
// benchServer names the handler that such a process serves.
const benchServer = "DIBS_BENCH_SERVER"

// soldOutBody is what both handlers answer.
var soldOutBody = dibs.Problem{
	Type: "urn:dibs:problem:sold_out", Title: "Sold out", Status: 409, Detail: "nothing is left", Reason: "sold_out",
	Code: 30006, Retryable: true, RequestID: "ABCDEFGHIJKLM-1", Remaining: new(int64),
}

func bare(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Quantity int64 `json:"quantity"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusConflict)
	_ = json.NewEncoder(w).Encode(soldOutBody)
}

// serveBench is the process of a benchmark's server: it prints its address,
// tells its CPU time at /cpu, and ends with its standard input.
func serveBench(kind string) {
	server := &http.Server{Handler: http.HandlerFunc(bare)}
	if kind == "dibs" {
		t := &benchTB{}
		defer t.cleanup()
		svc := newService(t)
		one := int64(1)
		now := time.Now()
		_, err := svc.CreateCampaign(context.Background(), dibs.CampaignSpec{
			ID: "noon", Kind: dibs.Sale, Title: "Bench",
			StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour), Stock: dibs.StockSpec{Units: &one},
		})
		must(t, err)
		_, err = svc.Publish(context.Background(), "noon")
		must(t, err)
		_, err = svc.Claim(context.Background(), dibs.ClaimRequest{CampaignID: "noon", UserID: "first"})
		must(t, err)
		h, err := httpapi.New(httpapi.Config{Service: svc, JWTSecret: []byte(jwtSecret)})
		must(t, err)
		server = httpapi.NewServer("", h)
	}
	inner := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cpu" {
			fmt.Fprint(w, cpuNanos())
			return
		}
		inner.ServeHTTP(w, r)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	go func() { _ = server.Serve(l) }()
	_, _ = os.Stdin.Read(make([]byte, 1))
	_ = server.Close()
}

func cpuNanos() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// startBench starts a server's process and returns its address.
func startBench(b *testing.B, kind string) string {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), benchServer+"="+kind)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(b, err)
	out, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	b.Cleanup(func() {
		must(b, in.Close())
		must(b, cmd.Wait())
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	must(b, err)
	return strings.TrimSpace(addr)
}

// benchClaims sends claims over 32 connections. token makes the token of the
// n-th request.
func benchClaims(b *testing.B, kind string, token func(n int64) string) {
	addr := startBench(b, kind)
	var n atomic.Int64
	warm := dialBench(b, addr)
	for range 200 {
		warm.claim(token(n.Add(1)))
	}
	before := warm.cpu()
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		c := dialBench(b, addr)
		for pb.Next() {
			if status := c.claim(token(n.Add(1))); status != http.StatusConflict {
				b.Errorf("status %d", status)
				return
			}
		}
		must(b, c.conn.Close())
	})
	b.StopTimer()
	b.ReportMetric(float64(warm.cpu()-before)/float64(b.N), "cpu-ns/op")
	must(b, warm.conn.Close())
}

// benchConn is a connection that costs its owner little.
type benchConn struct {
	b    *testing.B
	conn net.Conn
	r    *bufio.Reader
}

func dialBench(b *testing.B, addr string) *benchConn {
	conn, err := net.Dial("tcp", addr)
	must(b, err)
	return &benchConn{b: b, conn: conn, r: bufio.NewReader(conn)}
}

func (c *benchConn) claim(token string) int {
	const body = `{"quantity":1}`
	status, _ := c.send("POST /v1/campaigns/noon/claims HTTP/1.1\r\nHost: dibs\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: application/json\r\nContent-Length: 14\r\nAccept-Language: en\r\nUser-Agent: bench\r\n\r\n" + body)
	return status
}

func (c *benchConn) cpu() int64 {
	_, body := c.send("GET /cpu HTTP/1.1\r\nHost: dibs\r\n\r\n")
	n, err := strconv.ParseInt(body, 10, 64)
	must(c.b, err)
	return n
}

// send writes a request and reads its answer.
func (c *benchConn) send(request string) (status int, body string) {
	_, err := c.conn.Write([]byte(request))
	must(c.b, err)
	length := 0
	for {
		line, err := c.r.ReadSlice('\n')
		must(c.b, err)
		text := strings.TrimSpace(string(line))
		if text == "" {
			break
		}
		if status == 0 {
			status, err = strconv.Atoi(strings.Fields(text)[1])
			must(c.b, err)
		}
		if v, ok := strings.CutPrefix(text, "Content-Length: "); ok {
			length, err = strconv.Atoi(v)
			must(c.b, err)
		}
	}
	raw := make([]byte, length)
	for got := 0; got < length; {
		n, err := c.r.Read(raw[got:])
		must(c.b, err)
		got += n
	}
	return status, string(raw)
}

// BenchmarkBareHandler is a net/http handler that decodes and answers the same
// JSON and does nothing else.
func BenchmarkBareHandler(b *testing.B) {
	token, err := httpapi.IssueToken([]byte(jwtSecret), "42", time.Hour)
	must(b, err)
	benchClaims(b, "bare", func(int64) string { return token })
}

// BenchmarkClaimRefused is a refused claim in full: token, decision, answer;
// 1,000 users who press again and again.
func BenchmarkClaimRefused(b *testing.B) {
	tokens := issueTokens(b, 1000)
	benchClaims(b, "dibs", func(n int64) string { return tokens[n%1000] })
}

// BenchmarkClaimRefusedNewTokens has a token that was not seen before on every
// request: what verifying costs.
func BenchmarkClaimRefusedNewTokens(b *testing.B) {
	tokens := issueTokens(b, b.N+1000)
	benchClaims(b, "dibs", func(n int64) string { return tokens[n%int64(len(tokens))] })
}

func issueTokens(b *testing.B, n int) []string {
	tokens := make([]string, n)
	for i := range tokens {
		var err error
		tokens[i], err = httpapi.IssueToken([]byte(jwtSecret), "user-"+strconv.Itoa(i), time.Hour)
		must(b, err)
	}
	return tokens
}

// benchTB is the part of testing.TB that a process without tests needs.
type benchTB struct {
	testing.TB
	dir      string
	cleanups []func()
}

func (t *benchTB) Helper()          {}
func (t *benchTB) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *benchTB) Fatal(a ...any)   { panic(fmt.Sprint(a...)) }
func (t *benchTB) TempDir() string {
	if t.dir == "" {
		var err error
		if t.dir, err = os.MkdirTemp("", "dibs-bench"); err != nil {
			panic(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(t.dir) })
	}
	return t.dir
}

func (t *benchTB) cleanup() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}
