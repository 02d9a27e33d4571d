package remote

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
)

// roomFlags are a waiting room, a lottery and tickets as flags describe them. A lottery is a mode of
// a room, so both share flags; which of them a mode takes is the server's to judge.
type roomFlags struct {
	room                                         dibs.RoomSpec
	per, admitFor                                time.Duration
	opens, registrationOpens, registrationCloses string
	ticket                                       dibs.TicketSpec
	ticketLife                                   time.Duration
}

// add adds the flags of a campaign's gate. Zero values stand for the server's defaults.
func (o *roomFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(cli.OneOf(&o.room.Mode, dibs.FIFO, dibs.Shuffle, dibs.Lottery), "room", "A waiting room, `MODE` fifo or shuffle, or a lottery (default none)")
	f.Int64Var(&o.room.Rate, "room-rate", 0, "A waiting room admits `N` users a second, or in each --room-per")
	f.DurationVar(&o.per, "room-per", 0, "The time that --room-rate is for (default a second)")
	f.Int64Var(&o.room.Burst, "room-burst", 0, "A waiting room admits `N` users at once at the start (default a second's worth)")
	f.StringVar(&o.opens, "room-opens", "", "From when on users may take places: a `TIME` like that of --starts (default at once)")
	f.Int64Var(&o.room.Max, "room-max", 0, "At most `N` users get a place, or register")
	f.DurationVar(&o.admitFor, "admit-for", 0, "How long an admission is valid before its user has to renew it (default 2m)")
	f.StringVar(&o.registrationOpens, "registration-opens", "", "When registration for a lottery opens: a `TIME` like that of --starts (default at once)")
	f.StringVar(&o.registrationCloses, "registration-closes", "", "When registration for a lottery closes: a `TIME` like that of --starts")
	f.Int64Var(&o.room.Winners, "winners", 0, "`N` registrations win a lottery (default as many as there is stock)")
	f.StringVar(&o.room.PublicValue, "public-value", "", "Names, beforehand, the `VALUE` that the draw of a lottery waits for")
	f.StringVar(&o.room.PublicValueFormat, "public-value-format", "", "How that value will be written: `FORMAT` decimal:N, digits:N or hex:N (default the simplest spelling of a number, or a hash)")
	f.DurationVar(&o.ticketLife, "ticket", 0, "Claims need a ticket, valid for this long (default none)")
	f.IntVar(&o.ticket.WorkBits, "ticket-work", 0, "The work that a ticket costs, 2 to the power of `BITS` hashes (default none)")
	f.StringVar(&o.ticket.HumanCheck, "ticket-human-check", "", "The `URL` of a page that tells people from programs (default none)")
}

// belongs lists the flags that mean nothing without another one. Without the check they would be left
// out in silence, and the campaign would open without the gate that its author believes in.
var belongs = map[string][]string{
	"room": {
		"room-rate", "room-per", "room-burst", "room-opens", "room-max", "admit-for", "registration-opens", "registration-closes", "winners", "public-value", "public-value-format",
	},
	"ticket": {"ticket-work", "ticket-human-check"},
}

// read puts what was given into a campaign's gate. Without --room and --ticket the campaign has none
// of these, and the field stays nil.
func (o *roomFlags) read(cmd *cobra.Command, spec *dibs.CampaignSpec, now time.Time) error {
	given := cmd.Flags().Changed
	for owner, flags := range belongs {
		for _, flag := range flags {
			if given(flag) && !given(owner) {
				return cli.Usagef("--%s belongs to --%s", flag, owner)
			}
		}
	}
	gate := &dibs.GateSpec{}
	if given("ticket") {
		o.ticket.Lifetime = dibs.Duration(o.ticketLife)
		gate.Ticket = &o.ticket
	}
	if given("room") {
		err := readMoments(now, momentFlag{"--room-opens", o.opens, &o.room.OpensAt},
			momentFlag{"--registration-opens", o.registrationOpens, &o.room.RegistrationOpensAt},
			momentFlag{"--registration-closes", o.registrationCloses, &o.room.RegistrationClosesAt})
		if err != nil {
			return err
		}
		o.room.Per, o.room.AdmitFor = dibs.Duration(o.per), dibs.Duration(o.admitFor)
		gate.Room = &o.room
	}
	if gate.Room != nil || gate.Ticket != nil {
		spec.Gate = gate
	}
	return nil
}
