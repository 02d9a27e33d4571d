package plan

// usage counts how long the servers of one kind were busy, in equal parts of time.
type usage struct {
	// width is the length of a part in seconds.
	width float64
	// servers is how many servers are counted together.
	servers float64
	busy    []float64
	// waited is how long all parcels together waited for the servers, in seconds.
	waited float64
}

// add counts one server as busy from start to end.
func (u *usage) add(start, end float64) {
	for i := int(start / u.width); start < end; i++ {
		until := min(end, float64(i+1)*u.width)
		if until <= start {
			// The division was rounded down.
			continue
		}
		u.grow(i)
		u.busy[i] += until - start
		start = until
	}
}

func (u *usage) grow(i int) {
	for len(u.busy) <= i {
		u.busy = append(u.busy, 0)
	}
}

// share is the busy share of all servers in a part, from 0 to 1.
func (u *usage) share(i int) float64 {
	if i >= len(u.busy) || u.servers == 0 {
		return 0
	}
	return min(1, u.busy[i]/u.width/u.servers)
}

// busiest is the largest share of any part.
func (u *usage) busiest() float64 {
	most := 0.0
	for i := range u.busy {
		most = max(most, u.share(i))
	}
	return most
}

// between is the busy time of all servers from one time to another, in seconds.
func (u *usage) between(from, to float64) float64 {
	sum := 0.0
	for i, busy := range u.busy {
		start, end := float64(i)*u.width, float64(i+1)*u.width
		if overlap := min(end, to) - max(start, from); overlap > 0 {
			sum += busy * overlap / u.width
		}
	}
	return sum
}
