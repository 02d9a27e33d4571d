package moving

import (
	"cmp"
	"slices"
	"time"
)

// tranche is the units of a transfer.
type tranche struct {
	from, to int
	units    int64
}

const (
	// donorsAtOnce is from how many shards one receives at a time: the rest of the
	// stock may be spread thin over many, and units that are on their way are sold by
	// nobody meanwhile.
	donorsAtOnce = 4
	// aheadPart is the part of what a shard has that it must lack to be given units
	// before it is empty: transfers of a few units cost as much as large ones.
	aheadPart = 4
	// horizonTimes is how many times the length of a transfer a shard's stock should
	// last.
	horizonTimes = 3
	// paceOver is the time over which a pace is averaged, and paceLeast the shortest
	// one between two looks that tells of it.
	paceOver, paceLeast = 200 * time.Millisecond, 50 * time.Millisecond
	// crowdGone is how many units a shard must have been about to sell between two looks for
	// its crowd to be gone when it sold none: one that sells a few a second often sells none.
	crowdGone = 5
)

// pace is how fast a shard sells.
type pace struct {
	// granted, left and nowMS are the engine's counts and clock at the last look, in epoch.
	granted, left, nowMS int64
	epoch                uint16
	perMS                float64
	// quietMS is for how long it has sold none of what it had.
	quietMS int64
}

// keepPace learns from a look how fast the shards sell. Units that come back count as
// not sold.
func (p *pool) keepPace(v *view) {
	for i := range v.shards {
		st, k := &v.shards[i], &p.paces[i]
		if !v.ok[i] {
			continue
		}
		if k.epoch != st.Head.Epoch {
			*k = pace{granted: st.Granted, left: st.Remaining, nowMS: st.Now, epoch: st.Head.Epoch}
			continue
		}
		passed := time.Duration(st.Now-k.nowMS) * time.Millisecond
		if passed < paceLeast {
			continue
		}
		sold, ms := max(st.Granted-k.granted, 0), passed.Milliseconds()
		if k.quietMS += ms; sold > 0 || k.left == 0 {
			k.quietMS = 0
		}
		if k.quietMS >= p.took.Milliseconds()/2 && k.perMS*float64(ms) >= crowdGone {
			// An average takes a second to fall after a rush, and would keep units here that claims
			// elsewhere wait for.
			k.perMS = 0
		} else {
			k.perMS += (float64(sold)/float64(ms) - k.perMS) * min(1, float64(passed)/float64(paceOver))
		}
		k.granted, k.left, k.nowMS = st.Granted, st.Remaining, st.Now
	}
}

// level is a shard as transfers are planned by it.
type level struct {
	// ok says that the shard answers. left and coming are units that are there and on
	// their way, granted those that it has granted.
	ok                    bool
	left, coming, granted int64
	// sells is what it sells within the horizon, wants what claims that wait on it want
	// in all, and least the least that one of them does.
	sells, wants, least int64
	// ahead says that it is given units before it is empty.
	ahead bool
}

// levels are the shards as a look found them.
func (p *pool) levels(v *view, ahead bool) []level {
	dry, _ := p.wants()
	horizon := float64(horizonTimes * p.took.Milliseconds())
	in := make([]level, len(v.shards))
	for i := range in {
		in[i] = level{
			ok: v.ok[i], left: v.shards[i].Remaining, granted: v.shards[i].Granted, ahead: ahead,
			sells: int64(p.paces[i].perMS*horizon + 0.5),
		}
		in[i].wants, in[i].least = dry[i].units, dry[i].least
	}
	for _, c := range p.coming {
		in[c.to].coming += c.units
	}
	return in
}

// dry reports whether claims wait for units that neither are there nor come.
func (l *level) dry() bool { return l.ok && l.left+l.coming < l.wants }

// low reports whether the shard has less than it sells until more can be there.
func (l *level) low() bool { return l.ok && l.ahead && l.left+l.coming < l.sells }

// planned returns the transfers that the shards need: those that are dry, or soon
// will be, are raised to their part of what is left, by those that have more than
// theirs.
func planned(in []level) []tranche {
	parts := shares(in)
	if parts == nil {
		return nil
	}
	var need []int
	for i := range in {
		if in[i].dry() || in[i].low() {
			need = append(need, i)
		}
	}
	slices.SortStableFunc(need, func(a, b int) int {
		if in[a].dry() != in[b].dry() {
			return cmp.Compare(boolInt(in[b].dry()), boolInt(in[a].dry()))
		}
		return cmp.Compare(in[a].left+in[a].coming, in[b].left+in[b].coming)
	})
	spare := make([]int64, len(in))
	var all []tranche
	for _, to := range need {
		has := in[to].left + in[to].coming
		lacks := parts[to] - has
		switch {
		case lacks < 1,
			// Its part would serve no claim: see gathered.
			in[to].dry() && parts[to] < in[to].least,
			!in[to].dry() && lacks*aheadPart < has:
			continue
		}
		for i := range in {
			keeps := parts[i]
			if !in[to].dry() {
				keeps = max(keeps, in[i].sells)
			}
			spare[i] = 0
			if i != to && in[i].ok {
				spare[i] = in[i].left - keeps
			}
		}
		all = append(all, taken(in, to, lacks, spare)...)
	}
	if len(all) == 0 {
		return gathered(in)
	}
	return all
}

// taken takes units for a shard from those that have the most to spare, and lowers
// what they have left.
func taken(in []level, to int, lacks int64, spare []int64) (all []tranche) {
	for range donorsAtOnce {
		from := 0
		for i := range spare {
			if spare[i] > spare[from] {
				from = i
			}
		}
		units := min(lacks, spare[from])
		if units < 1 {
			break
		}
		all = append(all, tranche{from, to, units})
		in[from].left -= units
		spare[from], lacks = 0, lacks-units
	}
	return all
}

// shares returns each shard's part of what is left: what it will soon sell, and of
// the rest, or when it does not suffice for all, in proportion. The rest follows what
// the shards have granted so far: where few users are, few units stay. nil when
// nothing is left.
func shares(in []level) []int64 {
	var total, soon, granted float64
	for i := range in {
		if in[i].ok {
			total += float64(in[i].left + in[i].coming)
			soon += float64(in[i].sells + in[i].wants)
			granted += float64(in[i].granted) + 1
		}
	}
	if total < 1 {
		return nil
	}
	parts := make([]int64, len(in))
	for i := range in {
		if !in[i].ok {
			continue
		}
		part := float64(in[i].sells + in[i].wants)
		if soon > total {
			part *= total / soon
		} else {
			part += (total - soon) * (float64(in[i].granted) + 1) / granted
		}
		parts[i] = int64(part)
	}
	return parts
}

// gathered brings units together for one claim that wants several, or for one of
// several dry shards, when all parts are too small: the shard that lacks the least is
// served, by those on which no claim waits before others.
func gathered(in []level) []tranche {
	total, to := int64(0), -1
	for i := range in {
		total += in[i].left + in[i].coming
	}
	for i := range in {
		l := &in[i]
		if l.dry() && l.left+l.coming < l.least && l.least <= total && (to < 0 || lacks(l) < lacks(&in[to])) {
			to = i
		}
	}
	if to < 0 {
		return nil
	}
	missing := lacks(&in[to])
	from := make([]int, 0, len(in))
	for i := range in {
		if i != to && in[i].ok && in[i].left > 0 {
			from = append(from, i)
		}
	}
	slices.SortStableFunc(from, func(a, b int) int {
		return cmp.Or(cmp.Compare(boolInt(in[a].wants > 0), boolInt(in[b].wants > 0)), cmp.Compare(in[b].left, in[a].left))
	})
	var all []tranche
	for _, i := range from {
		if missing < 1 {
			break
		}
		units := min(missing, in[i].left)
		all = append(all, tranche{i, to, units})
		missing -= units
	}
	return all
}

// lacks is what the smallest claim that waits on a shard is short of.
func lacks(l *level) int64 { return l.least - l.left - l.coming }

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
