package redisengine

import (
	"context"
	"strings"

	"github.com/redis/rueidis"

	"github.com/dibs-dev/dibs"
)

// Halt takes a shard out, for all processes; see dibs.Engine.
func (e *Engine) Halt(ctx context.Context, id dibs.ShardID) error {
	l, err := e.lane(id)
	if err != nil {
		return err
	}
	defer l.lift()
	return (&opening{l: l}).step(ctx, haltScript, []string{l.keys.meta, l.keys.state})
}

// Server names the run of the server that has a shard; see dibs.Engine.
func (e *Engine) Server(ctx context.Context, id dibs.ShardID) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	r, err := e.redis.run(ctx, serverScript, []string{keysOf(id).meta})
	if err != nil {
		return "", fault(ctx, dibs.EffectNone, err)
	}
	res, err := resultOf(&r)
	if err == nil {
		err = refusal(&res)
	}
	if err == nil && len(res.rest) < 1 {
		err = errShape
	}
	if err != nil {
		return "", dibs.Unavail(dibs.EffectNone, err)
	}
	return res.rest[0].text, nil
}

// Servers names the runs of all masters that answer; see dibs.Engine. A replica
// stands there without a name: at its address no master is.
func (e *Engine) Servers(ctx context.Context) (map[string]string, error) {
	if e.closed.Load() {
		return nil, errClosed
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	return e.redis.masters(ctx), nil
}

// masters asks every server that is known who it is, all at once. One that does
// not answer in time is left out.
func (c *client) masters(ctx context.Context) map[string]string {
	type told struct{ addr, info string }
	nodes := c.c.Nodes()
	answers := make(chan told, len(nodes))
	for addr, node := range nodes {
		go func(node rueidis.Client) {
			r, err := answer(node.Do(ctx, node.B().Arbitrary("INFO").Build()))
			if err != nil {
				answers <- told{addr: addr}
				return
			}
			answers <- told{addr, r.text}
		}(node)
	}
	runs := make(map[string]string, len(nodes))
	for range nodes {
		if t := <-answers; t.info != "" {
			info := infoOf(t.info)
			runs[t.addr] = ""
			if info["role"] == "master" {
				runs[t.addr] = info["run_id"]
			}
		}
	}
	return runs
}

// infoOf reads the lines of an answer to INFO.
func infoOf(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[name] = value
	}
	return info
}
