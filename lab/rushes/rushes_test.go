package rushes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/lab/rehearsal"
)

// keys counts the keys that are valid.
type keys struct{ valid atomic.Int64 }

func (k *keys) CreateKey(_ context.Context, name string, role access.Role) (*access.APIKey, string, error) {
	k.valid.Add(1)
	return &access.APIKey{ID: "k-1", Name: name, Role: role}, "the-secret", nil
}

func (k *keys) RevokeKey(context.Context, string) error {
	k.valid.Add(-1)
	return nil
}

// await waits until a rehearsal is as wanted.
func await(t *testing.T, d *Desk, id string, good func(httpapi.RehearsalView) bool) httpapi.RehearsalView {
	t.Helper()
	for {
		v, changed, err := d.Find(id)
		if err != nil {
			t.Fatal(err)
		}
		if good(v) {
			return v
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("still %+v", v)
		}
	}
}

func over(v httpapi.RehearsalView) bool { return v.State != httpapi.RehearsalRunning }

// A rehearsal loads the server's own handler with a key that ends with it, and is told while it runs.
func TestDesk(t *testing.T) {
	k, goOn := &keys{}, make(chan struct{})
	d := New(Config{Keys: k, JWTSecret: "s", Run: func(ctx context.Context, cfg rehearsal.Config) (*rehearsal.Report, error) {
		resp, err := http.Get(cfg.URL + "/hello")
		if err != nil {
			return nil, err
		}
		said, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return nil, err
		}
		cfg.On(rehearsal.Event{Campaign: string(said)})
		cfg.On(rehearsal.Event{Phase: "pressing", Done: 3, Total: int64(cfg.Requests)})
		cfg.On(rehearsal.Event{Verdicts: []rehearsal.Verdict{{Promise: "no oversell", Judgement: rehearsal.Held, Witness: "answers"}}})
		<-goOn
		return &rehearsal.Report{OK: true, Run: cfg.AdminKey + cfg.JWTSecret, Promises: []rehearsal.Verdict{
			{Promise: "a", Judgement: rehearsal.Held, Detail: "all is well", DetailZH: "一切正常"}, {Promise: "b", Judgement: rehearsal.Broken},
		}}, nil
	}})
	defer d.Close()
	d.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
	v, err := d.Start(t.Context(), httpapi.RehearsalRequest{Requests: 7})
	if err != nil || v.State != httpapi.RehearsalRunning {
		t.Fatalf("%+v %v", v, err)
	}
	now := await(t, d, v.ID, func(v httpapi.RehearsalView) bool { return len(v.Promises) == 1 })
	if now.CampaignID != "/hello" || now.Phase != "pressing" || now.Did != 3 || now.Total != 7 || k.valid.Load() != 1 {
		t.Errorf("while it runs: %+v, %d keys", now, k.valid.Load())
	}
	if _, err := d.Start(t.Context(), httpapi.RehearsalRequest{}); !errors.Is(err, errBusy) {
		t.Errorf("a second one: %v", err)
	}
	close(goOn)
	end := await(t, d, v.ID, over)
	if end.State != httpapi.RehearsalDone || len(end.Promises) != 2 || end.Promises[1].Finding != "broken" || end.EndedAt == nil || !strings.Contains(string(end.Report), `"the-secrets"`) {
		t.Errorf("at its end: %+v", end)
	}
	if en, zh := string(end.Report), string(end.ReportZH); end.Promises[0].DetailZH != "一切正常" ||
		!strings.Contains(en, "all is well") || strings.Contains(en, "一切正常") || !strings.Contains(zh, "一切正常") || strings.Contains(zh, "all is well") {
		t.Errorf("in two languages: %s and %s", en, zh)
	}
	if n := k.valid.Load(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	if _, _, err := d.Find("r-none"); !errors.Is(err, errNone) {
		t.Errorf("a rehearsal that there is not: %v", err)
	}
}

// A rehearsal that cannot be run says why; a desk that is closed stops what runs, and begins nothing.
func TestDeskFailsAndCloses(t *testing.T) {
	k := &keys{}
	fails := true
	d := New(Config{Keys: k, Run: func(ctx context.Context, _ rehearsal.Config) (*rehearsal.Report, error) {
		if fails {
			return nil, errors.New("no server answers")
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	d.Serve(http.NotFoundHandler())
	v, err := d.Start(t.Context(), httpapi.RehearsalRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if end := await(t, d, v.ID, over); end.State != httpapi.RehearsalFailed || end.Error != "no server answers" || end.ErrorZH != "演练未能进行：no server answers" {
		t.Errorf("%+v", end)
	}
	fails = false
	if v, err = d.Start(t.Context(), httpapi.RehearsalRequest{}); err != nil {
		t.Fatal(err)
	}
	d.Close()
	if end, _, err := d.Find(v.ID); err != nil || end.State != httpapi.RehearsalFailed || k.valid.Load() != 0 {
		t.Errorf("after closing: %+v %v, %d keys", end, err, k.valid.Load())
	}
	if _, err := d.Start(t.Context(), httpapi.RehearsalRequest{}); !errors.Is(err, errGone) {
		t.Errorf("after closing: %v", err)
	}
}
