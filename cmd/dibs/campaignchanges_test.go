package main

import (
	"context"
	"testing"
)

// TestWatchChanges hears of each change as it happens, and ends with the campaign.
func TestWatchChanges(t *testing.T) {
	_, url := startServe(t, t.TempDir())
	api := admin(t, url)
	publish(t, api, "noon", 1)
	p := start(t, secrets, "campaign", "watch", "noon", "--changes", "--url", url)
	p.await(t, p.out, `noon +state +open +1\n`)
	for _, step := range []struct {
		do   func(context.Context) error
		want string
	}{
		{func(ctx context.Context) error { _, err := api.Pause(ctx, "noon"); return err }, `noon +paused +paused +1\n`},
		{func(ctx context.Context) error { _, err := api.Resume(ctx, "noon"); return err }, `noon +resumed +open +1\n`},
		{func(ctx context.Context) error { _, err := api.End(ctx, "noon"); return err }, `noon +ended +ended +1\n`},
	} {
		if err := step.do(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.await(t, p.out, step.want)
	}
	if code := p.code(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	execute(t, secrets, "campaign", "watch", "nobody", "--changes", "--url", url).want(t, 1, "not_found")
}
