package dibs

// Split is how a red packet's total is divided into shares. Package redpacket
// has the methods and says what each does to the spread of the shares.
type Split string

// The splits.
const (
	// DoubleMean draws each share evenly around the mean of what is left, from
	// the least up to twice the mean (二倍均值法).
	DoubleMean Split = "double_mean"
	// LineCut cuts the total like a line at random points; each way of cutting
	// it is as likely as any other (线段切割法).
	LineCut Split = "line_cut"
	// Equal gives all the same, give or take one minor unit.
	Equal Split = "equal"
)

// Splits lists the splits, the default first.
func Splits() []Split { return []Split{DoubleMean, LineCut, Equal} }

// MaxShares bounds the shares of one red packet. Each is an item.
const MaxShares = MaxItems

// RedPacketSpec is a red packet as its sender describes it: a total, and how
// it is divided. Total and Count are required.
type RedPacketSpec struct {
	// Total is what all shares sum to, from 1 minor unit.
	Total Money `json:"total" doc:"what all shares sum to"`
	// Count is how many shares there are, 1 ≤ Count ≤ MaxShares.
	Count int64 `json:"count" doc:"how many shares, at most 1000000"`
	// Split is DoubleMean when empty.
	Split Split `json:"split,omitempty" doc:"how the total is divided, default double_mean" enum:"double_mean,line_cut,equal"`
	// Min is the least share in minor units; 0 means 1.
	Min int64 `json:"min,omitempty" doc:"the least share in minor units, default 1"`
	// Max is the greatest share in minor units; 0 means no bound.
	Max int64 `json:"max,omitempty" doc:"the greatest share in minor units, default no bound"`
}

// WithDefaults returns the spec with its zero fields filled in.
func (p RedPacketSpec) WithDefaults() RedPacketSpec {
	if p.Split == "" {
		p.Split = DoubleMean
	}
	if p.Min == 0 {
		p.Min = 1
	}
	return p
}

// Faults lists everything that is wrong with the spec; field is the JSON
// pointer to it, empty when it is the whole input. A spec without faults can be
// divided.
func (p RedPacketSpec) Faults(field string) []Fault {
	p = p.WithDefaults()
	var fs []Fault
	bad := func(name string, t Text) { fs = append(fs, Fault{field + name, t}) }
	if p.Total.Amount < 1 || p.Total.Amount >= MaxMinor {
		bad("/total/amount", Textf("must be from 1 to %d", "必须在 1 到 %d 之间", MaxMinor-1))
	}
	if !isCurrency(p.Total.Currency) {
		bad("/total/currency", badCurrency)
	}
	if p.Count < 1 || p.Count > MaxShares {
		bad("/count", Textf("must be from 1 to %d", "必须在 1 到 %d 之间", MaxShares))
	}
	if p.Split != DoubleMean && p.Split != LineCut && p.Split != Equal {
		bad("/split", Text{"must be double_mean, line_cut or equal", "必须是 double_mean、line_cut 或 equal"})
	}
	if p.Min < 1 || p.Min >= MaxMinor {
		bad("/min", Textf("must be from 1 to %d, or absent for 1", "必须在 1 到 %d 之间；省略时为 1", MaxMinor-1))
	}
	if p.Max < 0 || p.Max >= MaxMinor {
		bad("/max", Textf("must be from 1 to %d, or absent for no bound", "必须在 1 到 %d 之间；省略时不设上限", MaxMinor-1))
	}
	if len(fs) > 0 {
		return fs
	}
	return p.sumFaults(field)
}

// sumFaults compares fields that are good by themselves. It divides where a
// product could overflow.
func (p RedPacketSpec) sumFaults(field string) []Fault {
	var fs []Fault
	bad := func(name string, t Text) { fs = append(fs, Fault{field + name, t}) }
	total := p.Total.Amount
	if p.Max != 0 && p.Max < p.Min {
		bad("/max", Textf("must be at least min, %d", "不得小于 min(%d)", p.Min))
	}
	switch most := total / p.Count; {
	case total < p.Count:
		bad("/total/amount", Textf("must be at least %d, one minor unit for each share", "至少为 %d，每份至少一个最小货币单位", p.Count))
	case p.Min > most:
		bad("/min", Textf("must be at most %d, or the total does not reach for %d shares", "最多为 %d，否则总额不够分成 %d 份", most, p.Count))
	}
	if least := (total + p.Count - 1) / p.Count; p.Max != 0 && p.Max < least {
		bad("/max", Textf("must be at least %d, or %d shares cannot hold the total", "至少为 %d，否则 %d 份装不下总额", least, p.Count))
	}
	return fs
}
