package remote

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
)

// TestRoomFlags: the flags become a gate; those of a room need --room, those of a
// ticket --ticket.
func TestRoomFlags(t *testing.T) {
	now := time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC)
	read := func(args string) (dibs.CampaignSpec, error) {
		var o roomFlags
		var spec dibs.CampaignSpec
		cmd := &cobra.Command{}
		o.add(cmd)
		if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		return spec, o.read(cmd, &spec, now)
	}
	for args, want := range map[string]string{
		"--winners 2": "--winners belongs to --room", "--admit-for 1m": "--admit-for belongs to --room", "--ticket-work 5": "--ticket-work belongs to --ticket",
		"--room fifo --room-opens noon": "--room-opens must be a time",
	} {
		if _, err := read(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	if spec, err := read(""); err != nil || spec.Gate != nil {
		t.Errorf("%+v, %v", spec.Gate, err)
	}
	spec, err := read("--room lottery --winners 2 --registration-opens now --registration-closes +1h --ticket 1m --ticket-work 5")
	if err != nil || spec.Gate == nil || spec.Gate.Room == nil || spec.Gate.Ticket == nil {
		t.Fatalf("%+v, %v", spec.Gate, err)
	}
	r, k := spec.Gate.Room, spec.Gate.Ticket
	if r.Mode != "lottery" || r.Winners != 2 || !r.RegistrationOpensAt.Equal(now) || !r.RegistrationClosesAt.Equal(now.Add(time.Hour)) || !r.OpensAt.IsZero() {
		t.Errorf("%+v", r)
	}
	if time.Duration(k.Lifetime) != time.Minute || k.WorkBits != 5 {
		t.Errorf("%+v", k)
	}
}
