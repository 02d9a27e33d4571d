package sqlledger

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/funds"
)

// packetColumns are read with campaigns; they are NULL for other kinds.
const packetColumns = `sender_id, total_amount, total_currency, share_count, split, share_min, share_max`

// packetRow is what a row of a campaign says of a red packet.
type packetRow struct {
	sender, currency, split  sql.NullString
	total, count, least, max sql.NullInt64
}

func (p *packetRow) fields() []any {
	return []any{&p.sender, &p.total, &p.currency, &p.count, &p.split, &p.least, &p.max}
}

// fill adds the red packet to its campaign.
func (p *packetRow) fill(c *dibs.Campaign) {
	if !p.total.Valid {
		return
	}
	c.SenderID = p.sender.String
	c.Packet = &dibs.RedPacketSpec{
		Total: dibs.Money{Amount: p.total.Int64, Currency: p.currency.String}, Count: p.count.Int64,
		Split: dibs.Split(p.split.String), Min: p.least.Int64, Max: p.max.Int64,
	}
}

// insertPacket adds a red packet and its shares, which nobody owns yet.
func (l *Ledger) insertPacket(ctx context.Context, s *session, number uint32, c *dibs.Campaign, values []string) error {
	p := c.Packet
	if _, err := s.exec(ctx, `INSERT INTO packets (campaign, sender_id, total_amount, total_currency, share_count, split,
		share_min, share_max, funded_at, returned_at, credited, returned, credit_epoch, credit_seq) VALUES (?,?,?,?,?,?,?,?,0,0,0,0,0,0)`,
		number, c.SenderID, p.Total.Amount, p.Total.Currency, p.Count, string(p.Split), p.Min, p.Max); err != nil {
		return err
	}
	args := make([]any, 0, 4*l.d.itemRows)
	for done := 0; done < len(values); {
		n := chunk(len(values)-done, l.d.itemRows)
		args = args[:0]
		for i := done; i < done+n; i++ {
			_, amount, ok := dibs.ParseShare(values[i])
			if !ok {
				return fmt.Errorf("share %d of campaign %s is %q", i, c.ID, values[i])
			}
			args = append(args, number, i, values[i], amount)
		}
		if _, err := s.exec(ctx, `INSERT INTO items (campaign, n, value, amount, shard) VALUES `+repeat("(?,?,?,?,0)", n), args...); err != nil {
			return err
		}
		done += n
	}
	return nil
}

// withdrawnRows is the most items that one statement withdraws.
const withdrawnRows = 512

// withdrawItems takes free items out of the stock. Each has to be free.
func withdrawItems(ctx context.Context, s *session, shard dibs.ShardID, e *dibs.Entry) error {
	var taken int64
	for items := e.Items; len(items) > 0; {
		part := items[:chunk(len(items), withdrawnRows)]
		items = items[len(part):]
		args := []any{shard.Campaign, shard.Shard}
		for _, n := range part {
			args = append(args, n)
		}
		n, err := s.exec(ctx, `UPDATE items SET withdrawn = 1 WHERE campaign = ? AND shard = ? AND claim_epoch IS NULL
			AND withdrawn = 0 AND n IN (`+repeat("?", len(part))+`)`, args...)
		if err != nil {
			return err
		}
		taken += n
	}
	if taken != int64(len(e.Items)) {
		return fmt.Errorf("%w: of %d items that the withdrawal %q takes, %d were free", dibs.ErrCorrupt, len(e.Items), e.Ref, taken)
	}
	return nil
}

// OpenPackets implements dibs.Funds.
func (l *Ledger) OpenPackets(ctx context.Context) ([]*funds.OpenPacket, error) {
	var found []*funds.OpenPacket
	err := l.read(ctx, "list open red packets", func(s *session) error {
		return s.each(ctx, `SELECT credit_epoch, credit_seq, pos_epoch, pos_seq, positions.stock_left, `+campaignColumns+`
			FROM campaigns JOIN packets ON packets.campaign = campaigns.number
			JOIN positions ON positions.campaign = campaigns.number AND positions.shard = 0
			WHERE returned_at = 0 AND funded_at > 0 ORDER BY number`, nil, func(rows *sql.Rows) error {
			var credited, settled dibs.Cursor
			p := &funds.OpenPacket{Campaign: new(dibs.Campaign)}
			found = append(found, p)
			err := scanCampaign(rows, p.Campaign, &credited.Epoch, &credited.Seq, &settled.Epoch, &settled.Seq, &p.Left)
			p.Behind = credited.Before(settled)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// PacketFunds implements dibs.Funds.
func (l *Ledger) PacketFunds(ctx context.Context, campaign uint32) (dibs.PacketFunds, error) {
	var f dibs.PacketFunds
	err := l.read(ctx, "read a red packet's funds", func(s *session) error {
		var funded, returned int64
		err := s.row(ctx, `SELECT total_amount, total_currency, funded_at, returned_at, credited, returned,
			COALESCE((SELECT balance FROM accounts WHERE accounts.kind = 'escrow' AND owner = campaigns.id AND currency = total_currency), 0)
			FROM packets JOIN campaigns ON number = campaign WHERE campaign = ?`, []any{campaign},
			&f.Funded, &f.Currency, &funded, &returned, &f.Credited, &f.Returned, &f.Escrow)
		if isNoRows(err) {
			return notFound(aCampaign, campaign)
		}
		if f.ReturnedAt = fromOptionalMS(returned); funded == 0 {
			f.Funded = 0
		}
		return err
	})
	return f, err
}

// credit is one claim that is to be credited.
type credit struct {
	dibs.Cursor
	user   string
	amount int64
}

// claimsAfter reads the claims of a red packet after a place, up to another, and
// what their shares are worth. An epoch at a time: the index knows each range.
func claimsAfter(ctx context.Context, s *session, campaign uint32, from, to dibs.Cursor, most int) ([]credit, error) {
	var found []credit
	err := eachEpoch(from, to, func(epoch uint16, after, last uint32) error {
		first := len(found)
		if first == most {
			return nil
		}
		if err := s.each(ctx, `SELECT seq, user_id FROM claims WHERE campaign = ? AND shard = 0 AND epoch = ? AND seq > ? AND seq <= ?
			ORDER BY seq LIMIT ?`, []any{campaign, epoch, after, last, most - first}, func(rows *sql.Rows) error {
			c := credit{Cursor: dibs.Cursor{Epoch: epoch}}
			err := rows.Scan(&c.Seq, &c.user)
			found = append(found, c)
			return err
		}); err != nil {
			return err
		}
		return addShares(ctx, s, campaign, found[first:])
	})
	return found, err
}

// eachEpoch calls f for each epoch from one place to another, with the range of
// its entries that lie between: after one seq, up to another.
func eachEpoch(from, to dibs.Cursor, f func(epoch uint16, after, last uint32) error) error {
	for epoch := from.Epoch; epoch <= to.Epoch; epoch++ {
		after, last := uint32(0), to.Seq
		if epoch == from.Epoch {
			after = from.Seq
		}
		if epoch < to.Epoch {
			last = ^uint32(0)
		}
		if err := f(epoch, after, last); err != nil {
			return err
		}
	}
	return nil
}

// addShares adds up what the shares of claims of one epoch are worth; nothing,
// when there is none.
func addShares(ctx context.Context, s *session, campaign uint32, claims []credit) error {
	if len(claims) == 0 {
		return nil
	}
	first, last := claims[0].Cursor, claims[len(claims)-1].Cursor
	return s.each(ctx, `SELECT claim_seq, amount FROM items`+s.d.byClaim+` WHERE campaign = ? AND shard = 0 AND claim_epoch = ?
		AND claim_seq >= ? AND claim_seq <= ?`, []any{campaign, first.Epoch, first.Seq, last.Seq}, func(rows *sql.Rows) error {
		var seq uint32
		var amount int64
		if err := rows.Scan(&seq, &amount); err != nil {
			return err
		}
		i, ok := slices.BinarySearchFunc(claims, seq, func(c credit, seq uint32) int { return int(int64(c.Seq) - int64(seq)) })
		if ok {
			claims[i].amount += amount
		}
		return nil
	})
}
