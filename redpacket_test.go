package dibs_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// FuzzPacketAmounts: whatever numbers a red packet is described with, it is
// refused naming its field, or can be divided.
func FuzzPacketAmounts(f *testing.F) {
	f.Add(int64(100), int64(10), int64(1), int64(20), "CNY")
	f.Add(int64(9), int64(10), int64(0), int64(0), "CNY")
	f.Add(dibs.MaxMinor, int64(1), dibs.MaxMinor, dibs.MaxMinor, "cny")
	f.Add(int64(-1), int64(-1), int64(-1), int64(-1), "")
	f.Fuzz(func(t *testing.T, total, count, least, most int64, currency string) {
		now := time.Now()
		spec := dibs.CampaignSpec{
			ID: "c", Kind: dibs.RedPacket, Title: "c", StartsAt: now, EndsAt: now.Add(time.Hour),
			Stock: dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: total, Currency: currency}, Count: count, Min: least, Max: most}},
		}
		c, err := spec.Campaign(now)
		var said *dibs.Error
		if err != nil {
			if !errors.As(err, &said) || len(said.Faults) == 0 || !strings.HasPrefix(said.Faults[0].Field, "/stock/redpacket/") {
				t.Errorf("refused by %v", err)
			}
			return
		}
		p := c.Packet
		if p.Count != count || p.Total.Amount != total || total < 1 || total >= dibs.MaxMinor || total/count < p.Min || p.Max != 0 && (total+count-1)/count > p.Max {
			t.Errorf("%+v is taken for a red packet", p)
		}
	})
}

func TestShareValue(t *testing.T) {
	for _, bad := range []string{"", "1", "1:", ":1", "1:0", "1:01", "1:-1", "1:+1", "1:1.5", "a:1:2", "1:" + strconv.FormatInt(dibs.MaxMinor, 10)} {
		if id, amount, ok := dibs.ParseShare(bad); ok {
			t.Errorf("%q is read as share %q of %d", bad, id, amount)
		}
	}
}
