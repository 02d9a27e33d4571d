package measure

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/redis/rueidis"
)

// server is dibs serve in a process of its own, with its files in a temporary folder.
type server struct {
	url, adminKey, secret string
	folder                string
	cmd                   *exec.Cmd
	// log is the end of what it wrote, for the error when it does not start.
	log  *tail
	done chan error
	// redis is asked for its processor time too; nil without one.
	redis rueidis.Client
}

// serving finds the address in the log of a server.
var serving = regexp.MustCompile(`msg=serving url=(\S+)`)

// How long a server may take to start and to stop.
const (
	startTime = time.Minute
	stopTime  = 30 * time.Second
)

// start starts a server with these arguments beside those of every server: here the
// load is the point, and claims wait rather than be refused.
func start(ctx context.Context, cfg *Config, args ...string) (s *server, err error) {
	s = &server{adminKey: "dibs_" + rand.Text() + rand.Text(), secret: rand.Text() + rand.Text(), log: &tail{}, done: make(chan error, 1)}
	if s.folder, err = os.MkdirTemp(cfg.Data, "dibs-plan-"); err != nil {
		return nil, err
	}
	args = append([]string{"serve", "--data", s.folder, "--listen", "127.0.0.1:0", "--overload-max", "1000000", "--overload-target", "1m"}, args...)
	s.cmd = exec.CommandContext(ctx, cfg.Program, args...)
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(os.Interrupt) }
	s.cmd.WaitDelay = stopTime
	endWithThis(s.cmd)
	// The settings of the user are for other servers.
	s.cmd.Env = []string{"DIBS_ADMIN_KEY=" + s.adminKey, "DIBS_JWT_SECRET=" + s.secret}
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "DIBS_") {
			s.cmd.Env = append(s.cmd.Env, pair)
		}
	}
	out, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.folder))
	}
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", cfg.Program, err), os.RemoveAll(s.folder))
	}
	found := make(chan string, 1)
	go s.read(out, found)
	select {
	case s.url = <-found:
		return s, nil
	case err = <-s.done:
		// stop waits for it too.
		s.done <- err
		err = fmt.Errorf("the server did not start (%w): %s", err, s.log.text())
	case <-time.After(startTime):
		err = fmt.Errorf("the server does not start: %s", s.log.text())
	}
	return nil, errors.Join(err, s.stop())
}

// read follows the server's log until its end.
func (s *server) read(out io.Reader, found chan<- string) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		s.log.add(lines.Text())
		if m := serving.FindStringSubmatch(lines.Text()); m != nil && len(found) == 0 {
			found <- m[1]
		}
	}
	s.done <- s.cmd.Wait()
}

// stop ends the server and removes its files.
func (s *server) stop() error {
	// It fails only when the process has ended.
	_ = s.cmd.Process.Signal(os.Interrupt)
	select {
	case <-s.done:
	case <-time.After(stopTime):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
	return os.RemoveAll(s.folder)
}

// tail keeps the last lines of a log. Safe for concurrent use.
//
// mu guards lines, which has tailLines at most, the newest last.
type tail struct {
	mu    sync.Mutex
	lines []string
}

const tailLines = 5

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	t.lines = t.lines[max(0, len(t.lines)-tailLines):]
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "; ")
}

// counts is what a server's metrics show at a moment: sums over all labels, in the
// metrics' own units.
type counts struct {
	at time.Time
	// cpu is processor time of the server, in seconds.
	cpu float64
	// redis is processor time of Redis, in seconds.
	redis float64
	// granted, settled and backlog are claims; transactions settled them in a time.
	granted, settled, backlog    float64
	transactions, transactionsIn float64
	// lag is how long the oldest entry has waited to be settled, in seconds.
	lag float64
	// steps made claims durable in a time.
	steps, stepsIn, stepClaims float64
}

// look reads the server's metrics.
func (s *server) look(ctx context.Context) (c counts, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		return c, err
	}
	req.Header.Set("Authorization", "Bearer "+s.adminKey)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if res.StatusCode != http.StatusOK {
		return c, fmt.Errorf("the server answers %s to /metrics", res.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(res.Body)
	if err != nil {
		return c, fmt.Errorf("reading the metrics: %w", err)
	}
	value := func(name string) (total float64) {
		for _, m := range families[name].GetMetric() {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
		return total
	}
	// Of the histograms with a label, that of a stage counts.
	histogram := func(name, stage string) (n, sum float64) {
		for _, m := range families[name].GetMetric() {
			if stage == "" || len(m.GetLabel()) > 0 && m.GetLabel()[0].GetValue() == stage {
				n, sum = n+float64(m.GetHistogram().GetSampleCount()), sum+m.GetHistogram().GetSampleSum()
			}
		}
		return n, sum
	}
	c = counts{
		at: time.Now(), cpu: value("process_cpu_seconds_total"),
		lag:     value("dibs_settle_lag_seconds"),
		granted: value("dibs_granted_total"), settled: value("dibs_settled_total"), backlog: value("dibs_journal_backlog"),
	}
	c.steps, c.stepsIn = histogram("dibs_claim_stage_seconds", "durable")
	_, c.stepClaims = histogram("dibs_engine_batch_claims", "")
	c.transactions, c.transactionsIn = histogram("dibs_settle_transaction_seconds", "")
	if s.redis != nil {
		c.redis, err = redisCPU(ctx, s.redis)
	}
	return c, err
}
