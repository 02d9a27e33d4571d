package simulation

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// maxSeeds bounds the seeds of one call.
const maxSeeds = 10_000_000

// Range is the seeds that somebody asks for.
type Range struct {
	First, Count uint64
	// Told says that somebody has asked for one seed, to read its story.
	Told bool
}

// ParseRange reads the texts of a first seed and of how many there are: empty ones
// mean 0 and fallback, and a first seed alone means that one.
func ParseRange(first, count string, fallback uint64) (Range, error) {
	r := Range{Count: fallback, Told: first != "" && count == ""}
	var err error
	if first != "" {
		if r.First, err = strconv.ParseUint(first, 10, 64); err != nil {
			return r, fmt.Errorf("SEED=%q is no seed: it must be a whole number from 0 to 18446744073709551615", first)
		}
	}
	if r.Told {
		r.Count = 1
	}
	if count != "" {
		if r.Count, err = strconv.ParseUint(count, 10, 64); err != nil || r.Count == 0 || r.Count > maxSeeds {
			return r, fmt.Errorf("SEEDS=%q is no number of seeds: it must be a whole number from 1 to %d", count, maxSeeds)
		}
	}
	return r, nil
}

// Faults are the names of the faults that can be planted.
func Faults() []string {
	var names []string
	for f := range reflect.TypeFor[Planted]().Fields() {
		names = append(names, f.Name)
	}
	return names
}

// Plant returns the planted fault of a name; none for an empty one.
func Plant(name string) (Planted, error) {
	var p Planted
	if name == "" {
		return p, nil
	}
	f := reflect.ValueOf(&p).Elem().FieldByName(name)
	if !f.IsValid() {
		return p, errors.New("PLANT=" + strconv.Quote(name) + " is no fault: it must be one of " + strings.Join(Faults(), ", "))
	}
	f.SetBool(true)
	return p, nil
}
