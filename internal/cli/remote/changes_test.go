package remote_test

import (
	"context"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestWatchChanges shows each change as it happens, and ends with the campaign.
func TestWatchChanges(t *testing.T) {
	_, url := clitest.Serve(t, t.TempDir())
	api := clitest.Admin(t, url)
	clitest.Publish(t, api, "noon", 1)
	p := clitest.Start(t, clitest.Secrets, "campaign", "watch", "noon", "--changes", "--url", url)
	p.Await(t, p.Out, `noon +state +open +1\n`)
	for _, step := range []struct {
		do   func(context.Context) error
		want string
	}{
		{func(ctx context.Context) error { _, err := api.Campaigns.Pause(ctx, "noon"); return err }, `noon +paused +paused +1\n`},
		{func(ctx context.Context) error { _, err := api.Campaigns.Resume(ctx, "noon"); return err }, `noon +resumed +open +1\n`},
		{func(ctx context.Context) error { _, err := api.Campaigns.End(ctx, "noon"); return err }, `noon +ended +ended +1\n`},
	} {
		if err := step.do(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.Await(t, p.Out, step.want)
	}
	if code := p.Code(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	clitest.Run(t, clitest.Secrets, "campaign", "watch", "nobody", "--changes", "--url", url).Want(t, 1, "not_found")
}
