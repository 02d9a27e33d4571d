package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

// twoDeployments are two Redis servers, and a server of dibs on both.
type twoDeployments struct {
	*testing.T
	redis [2]*servers.Redis
	data  string
	p     *process
	url   string
}

func newTwoDeployments(t *testing.T) *twoDeployments {
	d := &twoDeployments{T: t, data: t.TempDir()}
	for i := range d.redis {
		r, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Kill)
		d.redis[i] = r
	}
	return d
}

func (d *twoDeployments) flags() []string {
	return []string{"--engine", d.redis[0].URL(), "--engine", d.redis[1].URL()}
}

func (d *twoDeployments) serve() {
	d.Helper()
	d.p, d.url = startServe(d.T, d.data, d.flags()...)
}

func (d *twoDeployments) stop() {
	d.Helper()
	d.p.signal(d.T, syscall.SIGTERM)
	if code := d.p.code(d.T); code != 0 {
		d.Errorf("exit code %d", code)
	}
}

// claims has a user claim of each campaign, and returns those whose deployment is away.
func (d *twoDeployments) claims(all []string, user string) (unavailable []string) {
	d.Helper()
	for _, c := range all {
		r, _, err := clitest.User(d.T, d.url, user).Claim(d.Context(), c, 1, user)
		switch {
		case errors.Is(err, dibs.ErrUnavailable):
			unavailable = append(unavailable, c)
		case err != nil || r.ID == "":
			d.Fatalf("%s wants of %s: %+v, %v", user, c, r, err)
		}
	}
	return unavailable
}

func (d *twoDeployments) get(path string) string {
	d.Helper()
	r, err := http.Get(d.url + path)
	if err != nil {
		d.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		d.Errorf("%s: %d, %v", path, r.StatusCode, err)
	}
	return string(body)
}

// TestALostDeploymentAndARestart loses one of two Redis servers and restarts dibs: it serves
// what is on the other one, names the lost one, gives a shard of it up, and sells the rest
// once it is back after all. With both gone it does not start.
func TestALostDeploymentAndARestart(t *testing.T) {
	d := newTwoDeployments(t)
	d.serve()
	var all []string
	for i := range 8 {
		all = append(all, fmt.Sprint("c-", i))
		clitest.Publish(t, clitest.Admin(t, d.url), all[i], 3)
	}
	if away := d.claims(all, "ann"); len(away) > 0 {
		t.Fatalf("%v are unavailable", away)
	}
	clitest.Until(t, "all is settled", func() bool { return execute(t, clitest.Secrets, "verify", "--url", d.url).Code == 0 })
	d.stop()
	d.redis[0].Kill()

	d.serve()
	d.p.await(t, d.p.err, `cannot be reached: the node starts without it.*deployment=1 place=`+d.redis[0].URL())
	lost := d.claims(all, "bob")
	if len(lost) < 2 || len(lost) == len(all) {
		t.Fatalf("%v are unavailable", lost)
	}
	if ready := d.get("/readyz"); !strings.Contains(ready, "deployment 1 of the engine cannot decide claims") {
		t.Errorf("/readyz: %s", ready)
	}
	metrics := d.get("/metrics")
	for _, want := range []string{`dibs_deployment_up{deployment="1"} 0`, `dibs_deployment_up{deployment="2"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s among the metrics", want)
		}
	}
	execute(t, clitest.Secrets, append([]string{"doctor", "--data", d.data}, d.flags()...)...).Want(t, cli.ExitFailure, d.redis[0].URL()+": ")
	given := lost[len(lost)-1]
	execute(t, clitest.Secrets, "campaign", "abandon-shard", given, "0", "--unsold", "2", "--url", d.url).Want(t, 0)
	clitest.Until(t, "what was given up is sold", func() bool { return len(d.claims([]string{given}, "bob")) == 0 })

	if err := d.redis[0].Start(); err != nil {
		t.Fatal(err)
	}
	clitest.Until(t, "the rest is sold", func() bool { return len(d.claims(lost, "bob")) == 0 })
	d.p.await(t, d.p.err, `can be reached, and is used from now on.*deployment=1`)
	clitest.Until(t, "all is settled", func() bool { return execute(t, clitest.Secrets, "verify", "--url", d.url).Code == 0 })
	d.stop()

	for _, r := range d.redis {
		r.Kill()
	}
	execute(t, clitest.Secrets, append([]string{"serve", "--data", d.data, "--listen", "127.0.0.1:0"}, d.flags()...)...).
		Want(t, cli.ExitFailure, "start it, or correct host, port and TLS", d.redis[0].URL(), d.redis[1].URL())
}
