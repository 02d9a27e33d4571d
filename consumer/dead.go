package consumer

import (
	"context"
	"fmt"
	"strconv"
)

// DeadLetter is an event that was given up.
type DeadLetter struct {
	// Entry names the letter in its list.
	Entry    string `json:"entry"`
	EventID  string `json:"event_id"`
	Type     string `json:"type"`
	Subject  string `json:"subject"`
	Attempts int    `json:"attempts"`
	// Why is what the handler said the last time.
	Why string `json:"why,omitempty"`
	// Event is the event as it came.
	Event string `json:"event"`
}

// Dead names a group whose dead letters are meant. URL and Stream are those of
// its consumer's Config.
type Dead struct{ URL, Stream, Group string }

// DeadLetters lists up to max dead letters of a group after an entry, oldest
// first; after is empty for the first.
func DeadLetters(ctx context.Context, d Dead, after string, max int) ([]DeadLetter, error) {
	at, err := placeOf(d.URL, d.Stream, d.Group)
	if err != nil {
		return nil, err
	}
	return at.kind.dead(ctx, at, after, max)
}

// Replay brings dead letters back to their group, to be handled as if they were
// new: the one of an entry, or with an empty entry all that are dead when it
// begins. It returns how many. A crash halfway may bring one back twice.
func Replay(ctx context.Context, d Dead, entry string) (n int, err error) {
	at, err := placeOf(d.URL, d.Stream, d.Group)
	if err != nil {
		return 0, err
	}
	return at.kind.replay(ctx, at, entry)
}

func redisDead(ctx context.Context, at *place, after string, max int) ([]DeadLetter, error) {
	c, err := connect(at)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	from := "-"
	if after != "" {
		from = "(" + after
	}
	entries, err := c.Do(ctx, c.B().Arbitrary("XRANGE").Keys(deadOf(at.stream, at.group)).Args(from, "+", "COUNT", strconv.Itoa(max)).Build()).AsXRange()
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	letters := make([]DeadLetter, len(entries))
	for i, e := range entries {
		f := e.FieldValues
		attempts, err := strconv.Atoi(f["attempts"])
		if err != nil {
			return nil, fmt.Errorf("consumer: the dead letter %s: %w", e.ID, err)
		}
		letters[i] = DeadLetter{
			Entry: e.ID, EventID: f["id"], Type: f["type"], Subject: f["subject"], Attempts: attempts, Why: f["why"], Event: f["event"],
		}
	}
	return letters, nil
}

// replayPage is how many letters are brought back at a time.
const replayPage = 100

func redisReplay(ctx context.Context, at *place, entry string) (n int, err error) {
	c, err := connect(at)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	from, to := "-", "+"
	if entry != "" {
		from, to = entry, entry
	}
	dead := deadOf(at.stream, at.group)
	if entry == "" {
		last, err := c.Do(ctx, c.B().Arbitrary("XREVRANGE").Keys(dead).Args("+", "-", "COUNT", "1").Build()).AsXRange()
		if err != nil {
			return 0, fmt.Errorf("consumer: %w", err)
		}
		if len(last) == 0 {
			return 0, nil
		}
		// What is buried again from now on comes after it, and stays.
		to = last[0].ID
	}
	for {
		letters, err := c.Do(ctx, c.B().Arbitrary("XRANGE").Keys(dead).Args(from, to, "COUNT", strconv.Itoa(replayPage)).Build()).AsXRange()
		if err != nil {
			return n, fmt.Errorf("consumer: %w", err)
		}
		for _, l := range letters {
			f := l.FieldValues
			add := c.B().Arbitrary("XADD").Keys(replayed(at.stream, at.group)).
				Args("*", "id", f["id"], "type", f["type"], "subject", f["subject"], "event", f["event"]).Build()
			if err := c.Do(ctx, add).Error(); err != nil {
				return n, fmt.Errorf("consumer: %w", err)
			}
			if err := c.Do(ctx, c.B().Arbitrary("XDEL").Keys(dead).Args(l.ID).Build()).Error(); err != nil {
				return n, fmt.Errorf("consumer: %w", err)
			}
			n++
		}
		if len(letters) < replayPage || entry != "" {
			return n, nil
		}
	}
}
