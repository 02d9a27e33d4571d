package remote

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/internal/cli"
)

// roomFlags are a waiting room, a lottery and tickets as flags describe them.
type roomFlags struct {
	room       dibs.RoomSpec
	mode       string
	per        time.Duration
	admitFor   time.Duration
	opens      string
	regOpens   string
	regCloses  string
	ticket     dibs.TicketSpec
	ticketLife time.Duration
}

func (o *roomFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.mode, "room", "", "A waiting room, `MODE` fifo or shuffle, or a lottery (default none)")
	f.Int64Var(&o.room.Rate, "room-rate", 0, "How many users a waiting room admits per second, or in each --room-per, `N`")
	f.DurationVar(&o.per, "room-per", 0, "The time that --room-rate is for (default a second)")
	f.Int64Var(&o.room.Burst, "room-burst", 0, "How many users are admitted at once at the start, `N` (default a second's worth)")
	f.StringVar(&o.opens, "room-opens", "", "From when on users may take places: a `TIME` like that of --starts (default at once)")
	f.Int64Var(&o.room.Max, "room-max", 0, "The most users who get a place, or register, `N`")
	f.DurationVar(&o.admitFor, "admit-for", 0, "How long an admission is good for before it has to be renewed (default 2m)")
	f.StringVar(&o.regOpens, "registration-opens", "", "A lottery's first moment of registration: a `TIME` like that of --starts (default at once)")
	f.StringVar(&o.regCloses, "registration-closes", "", "A lottery's first moment after registration: a `TIME` like that of --starts")
	f.Int64Var(&o.room.Winners, "winners", 0, "How many win a lottery, `N` (default as many as there is stock)")
	f.StringVar(&o.room.PublicValue, "public-value", "", "Names, beforehand, the `VALUE` that a lottery's draw waits for")
	f.DurationVar(&o.ticketLife, "ticket", 0, "Claims need a ticket, good for so long (default none)")
	f.IntVar(&o.ticket.WorkBits, "ticket-work", 0, "The work that a ticket costs, 2 to the power of `BITS` hashes (default none)")
	f.StringVar(&o.ticket.HumanCheck, "ticket-human-check", "", "The `URL` of a page that tells people from programs (default none)")
}

// apply puts what was given into a campaign's gate.
func (o *roomFlags) apply(cmd *cobra.Command, spec *dibs.CampaignSpec, now time.Time) error {
	given := cmd.Flags().Changed
	for _, name := range []string{
		"room-rate", "room-per", "room-burst", "room-opens", "room-max", "admit-for", "registration-opens", "registration-closes", "winners", "public-value",
	} {
		if given(name) && !given("room") {
			return cli.Usagef("--%s belongs to --room", name)
		}
	}
	for _, name := range []string{"ticket-work", "ticket-human-check"} {
		if given(name) && !given("ticket") {
			return cli.Usagef("--%s belongs to --ticket", name)
		}
	}
	gate := spec.Gate
	if gate == nil {
		gate = &dibs.GateSpec{}
	}
	if given("ticket") {
		o.ticket.Lifetime = dibs.Duration(o.ticketLife)
		gate.Ticket = &o.ticket
	}
	if given("room") {
		if err := o.times(now); err != nil {
			return err
		}
		o.room.Mode, o.room.Per, o.room.AdmitFor = dibs.RoomMode(o.mode), dibs.Duration(o.per), dibs.Duration(o.admitFor)
		gate.Room = &o.room
	}
	if gate.Room != nil || gate.Ticket != nil {
		spec.Gate = gate
	}
	return nil
}

// times reads the times of a room.
func (o *roomFlags) times(now time.Time) error {
	for _, t := range []struct {
		flag, text string
		to         *time.Time
	}{
		{"--room-opens", o.opens, &o.room.OpensAt},
		{"--registration-opens", o.regOpens, &o.room.RegistrationOpensAt},
		{"--registration-closes", o.regCloses, &o.room.RegistrationClosesAt},
	} {
		if t.text == "" {
			continue
		}
		var err error
		if *t.to, err = parseMoment(t.flag, t.text, now); err != nil {
			return err
		}
	}
	return nil
}
