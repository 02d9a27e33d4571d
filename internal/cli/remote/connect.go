package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
)

// Connect makes a client of the server that the settings name.
func Connect(cmd *cobra.Command) (*config.Config, *client.Client, error) {
	c, err := config.Load(cmd, config.ClientRules)
	if err != nil {
		return nil, nil, err
	}
	api, err := client.New(c.URL, client.Options{AdminKey: c.AdminKey})
	if err != nil {
		return nil, nil, cli.Usage(err)
	}
	return c, api, nil
}

// ExplainCall says what to do about a call that did not work.
func ExplainCall(c *config.Config, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no server answers at %s: start one with dibs dev or dibs serve, or name another --url", c.URL)
	case errors.Is(err, &dibs.Error{Reason: dibs.Unauthenticated}), errors.Is(err, dibs.ErrForbidden):
		return fmt.Errorf("the server at %s does not take this admin key: %w", c.URL, err)
	}
	var refusal *client.Error
	if errors.As(err, &refusal) && len(refusal.Errors) > 0 {
		// The detail sums the faults up; told one by one, they need no summary.
		faults := make([]string, len(refusal.Errors))
		for i, f := range refusal.Errors {
			faults[i] = placeOf(f.Pointer) + " " + f.Detail
		}
		return fmt.Errorf("%s: %s", refusal.Reason, strings.Join(faults, "; "))
	}
	return err
}

// placeOf is a JSON pointer in the user's words: where in his file, or which
// field.
func placeOf(pointer string) string {
	if line, is := strings.CutPrefix(pointer, "/lines/"); is {
		return "line " + line
	}
	return strings.TrimPrefix(pointer, "/")
}

// call runs one call of a verb and shows its campaign.
func call(cmd *cobra.Command, output string, do func(context.Context, *client.Client) (dibs.CampaignView, error)) error {
	c, api, err := Connect(cmd)
	if err != nil {
		return err
	}
	v, err := do(cmd.Context(), api)
	if err != nil {
		return ExplainCall(c, err)
	}
	t := campaignTable(v)
	return cli.Show(cmd, output, v, &t)
}

// addCall gives a verb what every call needs.
func addCall(cmd *cobra.Command, output *string) *cobra.Command {
	config.AddFlags(cmd, config.ClientKeys)
	cli.AddOutput(cmd, output)
	return cmd
}

// eventsVerb is a verb that asks the server one thing and shows the answer.
func eventsVerb(use, short string, args cobra.PositionalArgs, do func(ctx context.Context, api *client.Client, args []string) (any, cli.Table, error)) *cobra.Command {
	var output string
	return addCall(&cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			v, t, err := do(cmd.Context(), api, args)
			if err != nil {
				return ExplainCall(c, err)
			}
			return cli.Show(cmd, output, v, &t)
		},
	}, &output)
}
