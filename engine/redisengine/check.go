package redisengine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// checkTime bounds how long Check takes.
const checkTime = 5 * time.Second

// Check looks at everything that the engine needs of Redis, and returns what it
// found, good or bad, in the order in which it would be repaired: the connection
// first. It changes nothing but keys with the tag {probe}, which it removes.
// The error is that of a configuration that cannot be used at all.
func Check(ctx context.Context, cfg Config) ([]dibs.Finding, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	c, err := cfg.connect(nil)
	if err != nil {
		return []dibs.Finding{unreachable(err)}, nil
	}
	defer c.Close()
	found := []dibs.Finding{{Standing: dibs.StandingOK, Subject: "connection", Found: "answers"}}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return append(found, unreachable(err)), nil
	}
	found = append(found, modeOf(nodes, c.IsCluster()))
	for i := range nodes {
		found = append(found, findingsOf(&nodes[i], &cfg, len(nodes) > 1)...)
	}
	found = append(found, rightsOf(ctx, c), trackingOf(c))
	for i := range nodes {
		found = append(found, advice(&nodes[i], len(nodes) > 1)...)
	}
	return found, nil
}

// Runs names the runs of the masters that answer at an address, to tell whether two
// addresses are the same server.
func Runs(ctx context.Context, cfg Config) ([]string, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	c, err := cfg.connect(nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	runs := slices.Collect(maps.Values(c.Masters(ctx)))
	return slices.DeleteFunc(runs, func(run string) bool { return run == "" }), nil
}

// Unreachable reports whether an error of Open, or of the first calls after it, says that
// no Redis answers at the address: it is down, frozen, cut off, or reads its files. Another
// error says that Redis answers and cannot be used so, such as a wrong password or a
// *CheckError, or that the configuration is wrong.
func Unreachable(err error) bool {
	_, unfit := errors.AsType[*CheckError](err)
	return err != nil && !unfit && conn.CannotReach(err)
}

// unreachable is the finding of a connection that failed.
func unreachable(err error) dibs.Finding {
	text := strings.TrimPrefix(err.Error(), "redisengine: ")
	f := dibs.Finding{
		Standing: dibs.StandingFail, Subject: "connection", Found: text, Wanted: "a server that answers",
		Remedy: "start Redis, and check host, port and TLS of the URL",
	}
	switch {
	// Redis says NOAUTH, among others.
	case strings.Contains(text, "WRONGPASS") || strings.Contains(text, "AUTH"):
		f.Subject, f.Wanted = "authentication", "user and password that Redis knows"
		f.Remedy = "set user and password in the URL: redis://user:password@host"
	case strings.Contains(text, "NOPERM"):
		f.Subject, f.Wanted = "rights", "a user that may run what the engine needs"
		f.Remedy = "allow the command to the ACL user of the URL; in a cluster cluster|slots and cluster|shards too"
	case strings.Contains(text, "cluster support disabled"):
		f.Subject, f.Found, f.Wanted = "cluster mode", "a standalone server", "a cluster, since the URL has several addresses"
		f.Remedy = "leave one address in the URL, or set cluster-enabled yes"
	}
	return f
}

// trackingOf tells whether refusals are given without asking Redis.
func trackingOf(c *conn.Client) dibs.Finding {
	f := dibs.Finding{Standing: dibs.StandingOK, Subject: "client tracking", Found: "on", Wanted: "on"}
	if !c.Follows() {
		f.Standing, f.Found = dibs.StandingWarn, "off"
		f.Remedy = "use a Redis, or a proxy, of RESP3 with CLIENT TRACKING: without it every refusal is asked for"
	}
	return f
}

// neededRights are the rules of a user that may do what the engine does, on a
// server that is no cluster, and nothing else that matters.
const neededRights = "~dibs:* -@all +@hash +@string +@list +@set +@stream +@scripting +@keyspace +@connection +config|get +info +wait +time"

// rightsOf has Redis try every command that the scripts use.
func rightsOf(ctx context.Context, c *conn.Client) dibs.Finding {
	const all = "every command that is needed"
	f := dibs.Finding{Standing: dibs.StandingOK, Subject: "rights", Found: all, Wanted: all}
	r, err := c.Run(ctx, conn.ProbeScript, format.ProbeKeys)
	switch answered, ok := errors.AsType[*conn.AnsweredError](err); {
	case ok:
		f.Found = answered.Message
	case err != nil:
		f.Found = err.Error()
	case len(r.List) > 4:
		var refused []string
		for _, v := range r.List[4:] {
			refused = append(refused, v.Text)
		}
		f.Found = "refused: " + strings.Join(refused, ", ")
	default:
		return f
	}
	f.Standing = dibs.StandingFail
	f.Remedy = "allow the engine's user: ACL SETUSER name " + neededRights
	return f
}
