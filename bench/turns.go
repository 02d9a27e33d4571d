package main

import (
	"context"
	"fmt"
)

// turns is how many times each of the servers that are compared has its turn. More turns make the
// slices shorter, until the requests for the CPU time weigh in them.
const turns = 20

// cpuInTurns has servers of several kinds answer claims in turns, each a slice of its list at a time,
// and returns what a claim cost each, in microseconds, as the mean of its turns. On a machine whose
// speed changes from second to second, only neighbours compare. All servers run from the beginning,
// idle out of their turn; before the first turn each answers a tenth of its list, uncounted. Each
// claim must have the status. lists has a token for each claim, by kind.
func cpuInTurns(ctx context.Context, kinds []string, campaign string, lists map[string][]string, status int) (map[string]float64, error) {
	servers := map[string]*remote{}
	for _, kind := range kinds {
		r, err := start(ctx, kind)
		if err != nil {
			return nil, err
		}
		defer r.stop()
		servers[kind] = r
		if err := r.press(ctx, campaign, lists[kind][:len(lists[kind])/10], status); err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
	}
	spent := map[string]float64{}
	for i := range turns {
		for _, kind := range kinds {
			took, err := servers[kind].turn(ctx, campaign, lists[kind], i, status)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", kind, err)
			}
			spent[kind] += took / turns
		}
	}
	return spent, nil
}

// turn is the i-th turn of a server: the CPU that a claim of its slice cost, in
// microseconds.
func (r *remote) turn(ctx context.Context, campaign string, list []string, i, status int) (float64, error) {
	slice := list[i*len(list)/turns : (i+1)*len(list)/turns]
	cpu, err := rise(ctx, r.cpu, func() error { return r.press(ctx, campaign, slice, status) })
	return cpu / float64(len(slice)), err
}
