package livestats

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// Store runs scripts where every node can reach them; dibs.SharedStore is one.
type Store interface {
	// RunScript runs a script on keys of one slot, and returns its answer: texts, int64 and nil.
	RunScript(ctx context.Context, text string, keys []string, args ...string) ([]any, error)
}

//go:embed lua/exchange.lua
var exchangeScript string

// boardKeys share a hash tag, so that a cluster keeps them in one slot. It is none of a campaign's: publishing counts does
// not slow down claims.
var boardKeys = []string{"dibs:{meters}:watched", "dibs:{meters}:counts"}

// goodFor is how many exchanges may fail until a node's counts are forgotten.
const goodFor = 10

// sureAfter is how many exchanges it takes until every other node's counts of a campaign are
// there: one asks for them, another node learns of it by its next one and gives its counts
// by the one after, and the nodes take turns as they like.
const sureAfter = 4

// counts is what one node has counted since it started.
type counts struct {
	// Refused are refusals of a campaign, by reason.
	Refused map[string]int64 `json:"refused,omitempty"`
	// Engine is how long claims of any campaign spent in the engine, in nanoseconds.
	Engine dibs.Tally `json:"engine"`
}

// board exchanges the counts of campaigns that are watched with the other nodes, about once a second: one script a second
// and node, whether or not a campaign is watched. Claims are not touched: the counts are read where nodes keep them anyway.
//
// mu guards watched, wanted and others. exchange is called by one goroutine.
type board struct {
	store Store
	node  string
	// own returns this node's counts of a campaign.
	own func(campaign string) counts

	mu sync.Mutex
	// watched counts this node's watchers by campaign, and asked the exchanges since they came.
	watched, asked map[string]int
	// wanted are the campaigns that any node watches, as of the last exchange.
	wanted []string
	// others are the other nodes' counts, by campaign and node.
	others map[string]map[string]counts
}

func newBoard(s Store, own func(string) counts) *board {
	return &board{store: s, node: rand.Text(), own: own, watched: map[string]int{}, asked: map[string]int{}}
}

// watch counts a watcher of a campaign, or one less. A nil board does nothing.
func (b *board) watch(campaign string, more int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watched[campaign] += more; b.watched[campaign] <= 0 {
		delete(b.watched, campaign)
		delete(b.asked, campaign)
	}
}

// of returns the other nodes' counts of a campaign, by node. known is false, and there are none, while some may be missing:
// for a nil board, until sureAfter, and while the exchange fails.
func (b *board) of(campaign string) (others map[string]counts, known bool) {
	if b == nil {
		return nil, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.others == nil || b.asked[campaign] < sureAfter {
		return nil, false
	}
	return maps.Clone(b.others[campaign]), true
}

// run exchanges counts until ctx ends.
func (b *board) run(ctx context.Context, every time.Duration, log *slog.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	failing := false
	for {
		err := b.exchange(ctx, every)
		// Each outage is one line: health tells the rest.
		if err != nil && !failing && ctx.Err() == nil {
			log.Warn("counts of other nodes are not up to date", "err", err)
		}
		failing = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// exchange gives this node's counts of what any node watches, and takes the other nodes' counts of what this one watches.
// After an error nothing is known of other nodes.
func (b *board) exchange(ctx context.Context, every time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, goodFor*every)
	defer cancel()
	b.mu.Lock()
	mine, wanted := slices.Sorted(maps.Keys(b.watched)), b.wanted
	b.mu.Unlock()
	args := append([]string{b.node, strconv.FormatInt((goodFor * every).Milliseconds(), 10), strconv.Itoa(len(mine))}, mine...)
	for _, campaign := range wanted {
		text, err := json.Marshal(b.own(campaign))
		if err != nil {
			return err
		}
		args = append(args, campaign, string(text))
	}
	answer, err := b.store.RunScript(ctx, exchangeScript, boardKeys, args...)
	if err == nil {
		wanted, others, readErr := readExchange(answer)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.wanted, b.others = wanted, others
		for _, campaign := range mine {
			if b.watched[campaign] > 0 {
				b.asked[campaign]++
			}
		}
		return readErr
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.others = nil
	clear(b.asked)
	return err
}

var errShape = errors.New("meters: a script answered in another shape than it should")

// readExchange reads what the script answered.
func readExchange(answer []any) (wanted []string, others map[string]map[string]counts, err error) {
	if len(answer) == 0 {
		return nil, nil, errShape
	}
	n, ok := answer[0].(int64)
	texts := make([]string, 0, len(answer))
	for _, v := range answer[1:] {
		text, is := v.(string)
		ok = ok && is
		texts = append(texts, text)
	}
	if !ok || n < 0 || n > int64(len(texts)) || (len(texts)-int(n))%3 != 0 {
		return nil, nil, errShape
	}
	wanted, others = texts[:n], map[string]map[string]counts{}
	for rest := texts[n:]; len(rest) > 0; rest = rest[3:] {
		var c counts
		if err := json.Unmarshal([]byte(rest[2]), &c); err != nil {
			return wanted, nil, errors.Join(errShape, err)
		}
		if others[rest[0]] == nil {
			others[rest[0]] = map[string]counts{}
		}
		others[rest[0]][rest[1]] = c
	}
	return wanted, others, nil
}
