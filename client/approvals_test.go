package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/funds"
)

func TestApprovals(t *testing.T) {
	calls(t, map[string]func(context.Context, *client.Client) error{
		"admin-key GET /v1/approvals?limit=2": func(ctx context.Context, c *client.Client) error {
			_, err := c.Approvals.List(ctx, dibs.Page{Limit: 2})
			return err
		},
		"admin-key GET /v1/approvals/a%2Fb": func(ctx context.Context, c *client.Client) error {
			_, err := c.Approvals.Get(ctx, "a/b")
			return err
		},
		"admin-key POST /v1/approvals/a/approve": func(ctx context.Context, c *client.Client) error {
			_, err := c.Approvals.Approve(ctx, "a", "checked")
			return err
		},
		"admin-key POST /v1/approvals/a/reject": func(ctx context.Context, c *client.Client) error {
			_, err := c.Approvals.Reject(ctx, "a", "")
			return err
		},
	})
}

// TestPending: an act that waits for a second person is no success that a caller could mistake
// for one.
func TestPending(t *testing.T) {
	e, c := serve(t, client.Options{AdminKey: "k"})
	e.status, e.body = 202, `{"approval_id":"ap-1","state":"pending"}`
	_, _, err := c.Accounts.Deposit(t.Context(), "42", funds.DepositSpec{Ref: "r"})
	var waits *client.Pending
	if !errors.As(err, &waits) || waits.ApprovalID != "ap-1" {
		t.Errorf("%v", err)
	}
	e.body = `{"id":"e-1","state":"running"}`
	if _, err := c.Erasures.Get(t.Context(), "e-1"); err != nil {
		t.Errorf("another answer with 202: %v", err)
	}
}
