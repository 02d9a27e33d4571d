package strategies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/rueidis"
)

var grabScript = script("grab")

// The keys of a red packet; one hash tag keeps them in one slot.
const (
	packetsKey = "lab:{packet}:packets"
	takenKey   = "lab:{packet}:taken"
	ownersKey  = "lab:{packet}:owners"
)

// packetConns is how many connections the usual load on red packets has, each with one
// call under way: it is grabbed by 20 threads.
const packetConns = 20

// packet is what the red packets' strategies share: shares made in advance, two queues and a map of who has one, and one
// writer that drains what was taken into the database in batches.
type packet struct {
	*World
}

var packetKeys = []string{packetsKey, takenKey, ownersKey}

// fill queues the shares.
func (a *packet) fill(ctx context.Context) error {
	for at := int64(0); at < a.Stock; {
		var shares []string
		for ; at < a.Stock && len(shares) < 1000; at++ {
			shares = append(shares, fmt.Sprintf(`{"id":%d,"money":%d}`, at, 1+at%100))
		}
		if err := a.Redis.c.Do(ctx, a.Redis.c.B().Lpush().Key(packetsKey).Element(shares...).Build()).Error(); err != nil {
			return err
		}
	}
	return nil
}

// Finish implements Attempt: the writer drains what was taken.
func (a *packet) Finish(ctx context.Context) error {
	for {
		taken, err := a.Redis.c.Do(ctx, a.Redis.c.B().Lrange().Key(takenKey).Start(-1000).Stop(-1).Build()).AsStrSlice()
		if err != nil || len(taken) == 0 {
			return err
		}
		users := make([]string, 0, len(taken))
		for _, text := range taken {
			var t struct {
				UserID string `json:"userId"`
			}
			if err := json.Unmarshal([]byte(text), &t); err != nil {
				return err
			}
			users = append(users, t.UserID)
		}
		if err := a.SQL.orders(ctx, users); err != nil {
			return err
		}
		if err := a.Redis.c.Do(ctx, a.Redis.c.B().Ltrim().Key(takenKey).Start(0).Stop(int64(-len(taken)-1)).Build()).Error(); err != nil {
			return err
		}
	}
}

// told reads one answer of the script.
func told(m *rueidis.RedisMessage) (Outcome, error) {
	pair, err := m.ToArray()
	if err != nil {
		return Busy, err
	}
	code, err := pair[0].AsInt64()
	switch {
	case err != nil:
		return Busy, err
	case code == 0:
		return Granted, nil
	case code == 1:
		return Again, nil
	}
	return SoldOut, nil
}

// oneAnswer reads the answer of a call for one user.
func oneAnswer(r rueidis.RedisResult) (Outcome, error) {
	list, err := r.ToArray()
	if err != nil || len(list) != 1 {
		return Busy, errors.Join(errors.New("strategies: no answer"), err)
	}
	return told(&list[0])
}

// packetScript is one script call for each grab,
// on a connection of its own: the usual way to hand out red packets.
type packetScript struct {
	connected
	// sha names the script, which is loaded once.
	sha string
}

func openPacketScript(ctx context.Context, w *World) (Attempt, error) {
	sha, err := w.Redis.c.Do(ctx, w.Redis.c.B().ScriptLoad().Script(scriptText("grab")).Build()).ToString()
	if err != nil {
		return nil, err
	}
	a := &packetScript{dedicate(w), sha}
	return a, a.fill(ctx)
}

// Claim implements Attempt.
func (a *packetScript) Claim(ctx context.Context, user string) (Outcome, error) {
	c := <-a.free
	defer func() { a.free <- c }()
	a.Redis.calls.Add(1)
	return oneAnswer(c.Do(ctx, c.B().Evalsha().Sha1(a.sha).Numkeys(int64(len(packetKeys))).Key(packetKeys...).Arg(user).Build()))
}

// connected has connections of its own, each for one caller at a time: a caller that takes one off
// free uses it alone, and puts it back. all is for Finish, when no caller has any.
type connected struct {
	packet
	free chan rueidis.DedicatedClient
	all  []func()
}

func dedicate(w *World) connected {
	p := connected{packet: packet{w}, free: make(chan rueidis.DedicatedClient, packetConns)}
	for range packetConns {
		c, release := w.Redis.c.Dedicate()
		p.free <- c
		p.all = append(p.all, release)
	}
	return p
}

// Finish implements Attempt.
func (p *connected) Finish(ctx context.Context) error {
	for _, release := range p.all {
		release()
	}
	return p.packet.Finish(ctx)
}

// packetPipeline sends the same calls over one connection, without waiting for
// each other's answers.
type packetPipeline struct{ packet }

// Claim implements Attempt.
func (a *packetPipeline) Claim(ctx context.Context, user string) (Outcome, error) {
	return oneAnswer(a.Redis.run(ctx, grabScript, packetKeys, user))
}

// batchMost bounds a call of packetBatch.
const batchMost = 500

// packetBatch collects the users who come while a call is under way, and takes packets for
// all of them by the next one. One goroutine, callAll, makes all calls; callers hand it their users
// over the channel and wait for their own answer. Finish closes the channel when no Claim is under way.
type packetBatch struct {
	packet
	users  chan waiting
	caller sync.WaitGroup
}

type waiting struct {
	user   string
	answer chan<- answer
}

type answer struct {
	out Outcome
	err error
}

func openPacketBatch(ctx context.Context, w *World) (Attempt, error) {
	a := &packetBatch{packet: packet{w}, users: make(chan waiting, batchMost)}
	own := context.WithoutCancel(ctx)
	a.caller.Go(func() { a.callAll(own) })
	return a, a.fill(ctx)
}

// Claim implements Attempt.
func (a *packetBatch) Claim(_ context.Context, user string) (Outcome, error) {
	told := make(chan answer, 1)
	a.users <- waiting{user, told}
	r := <-told
	return r.out, r.err
}

// callAll makes a batch of what waits, without waiting for more, until the channel is closed.
func (a *packetBatch) callAll(ctx context.Context) {
	for first := range a.users {
		batch := []waiting{first}
	gather:
		for len(batch) < batchMost {
			select {
			case next, open := <-a.users:
				if !open {
					break gather
				}
				batch = append(batch, next)
			default:
				break gather
			}
		}
		a.call(ctx, batch)
	}
}

// call takes packets for a batch and answers each of its callers, exactly once, also after an error.
func (a *packetBatch) call(ctx context.Context, batch []waiting) {
	users := make([]string, len(batch))
	for i := range batch {
		users[i] = batch[i].user
	}
	list, err := a.Redis.run(ctx, grabScript, packetKeys, users...).ToArray()
	if err == nil && len(list) != len(batch) {
		err = errors.New("strategies: answers are missing")
	}
	for i := range batch {
		r := answer{Busy, err}
		if err == nil {
			r.out, r.err = told(&list[i])
		}
		batch[i].answer <- r
	}
}

// Finish implements Attempt.
func (a *packetBatch) Finish(ctx context.Context) error {
	close(a.users)
	a.caller.Wait()
	return a.packet.Finish(ctx)
}
