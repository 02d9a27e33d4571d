package experiments

import (
	"context"
	"fmt"
	"strings"
)

// on makes an experiment of two connections.
func on(group, name, claim string, do func(a, b *conn) (Seen, error)) Experiment {
	return Experiment{Group: group, Name: name, Claim: claim, run: func(ctx context.Context, b *bench) (Seen, error) { return b.two(ctx, do) }}
}

// transactions are experiments with MULTI and EXEC.
func transactions() []Experiment { return append(atomic(), watched()...) }

// atomic are experiments with what becomes of a transaction as a whole.
func atomic() []Experiment {
	return []Experiment{
		on(Redis, "refused-command", "A command that Redis cannot queue aborts the whole transaction: atomic before EXEC", func(a, _ *conn) (Seen, error) {
			a.run("SET msg before", "MULTI", "SET msg after")
			queued := a.run("NOSUCHCOMMAND")
			exec := a.run("EXEC")
			left := a.run("GET msg")
			seen := Seen{Broken: fmt.Sprintf("queueing NOSUCHCOMMAND: %s", first(queued)), Right: fmt.Sprintf("EXEC: %s; msg is still %q", first(exec), left)}
			return seen, check(strings.HasPrefix(exec, "EXECABORT") && left == "before", "%s, msg %s", exec, left)
		}),
		on(Redis, "no-rollback", "A command that fails inside EXEC undoes nothing: the others stay", func(a, _ *conn) (Seen, error) {
			a.run("SET text words", "MULTI", "SET msg one", "HSET text field value", "SET msg two")
			exec := a.run("EXEC")
			left := a.run("GET msg")
			// The right way looks at the type first, in the same step.
			script := `if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then return 'refused' end redis.call('SET', KEYS[2], 'three') return 'done'`
			refused := a.do("EVAL", script, "2", "text", "msg")
			seen := Seen{
				Broken: fmt.Sprintf("EXEC: %s; msg is %q all the same", exec, left),
				Right:  fmt.Sprintf("a script that checks the type before it writes: %s; msg is still %q", refused, a.run("GET msg")),
			}
			return seen, check(strings.Contains(exec, "WRONGTYPE") && left == "two" && refused == "refused" && a.run("GET msg") == "two", "%+v", seen)
		}),
		on(Redis, "discard", "DISCARD drops what was queued, and ends the watch", func(a, b *conn) (Seen, error) {
			a.run("SET n 1", "WATCH n", "MULTI", "INCR n")
			discarded := a.run("DISCARD")
			b.run("SET n 5")
			a.run("MULTI", "INCR n")
			exec := a.run("EXEC")
			seen := Seen{Broken: "queued: INCR n; " + discarded + " after DISCARD", Right: fmt.Sprintf("n was changed by another process since WATCH, and the next EXEC runs: %s", exec)}
			return seen, check(discarded == "OK" && exec == "[6]", "%+v", seen)
		}),
	}
}

// watched are experiments with what others do meanwhile.
func watched() []Experiment {
	return []Experiment{
		on(Redis, "watch", "Between reading and EXEC another process may change what was read; WATCH makes EXEC notice", func(a, b *conn) (Seen, error) {
			a.run("SET stock 1")
			// Both read 1, and both sell.
			read := a.run("GET stock") + b.run("GET stock")
			for _, c := range []*conn{a, b} {
				c.run("MULTI", "DECR stock", "EXEC")
			}
			broken := a.run("GET stock")
			a.run("SET stock 1", "WATCH stock", "GET stock")
			b.run("WATCH stock", "GET stock", "MULTI", "DECR stock")
			faster := b.run("EXEC")
			a.run("MULTI", "DECR stock")
			late := a.run("EXEC")
			seen := Seen{
				Broken: fmt.Sprintf("both read %s, both sell: the stock is %s", strings.Join(strings.Split(read, ""), " and "), broken),
				Right:  fmt.Sprintf("with WATCH: %s for the faster, %s for the other; the stock is %s", faster, late, a.run("GET stock")),
			}
			return seen, check(broken == "-1" && faster == "[0]" && late == "(nil)" && a.run("GET stock") == "0", "%+v", seen)
		}),
		on(Redis, "unwatch", "UNWATCH forgets what is watched: a decision not to write needs it, or the next transaction fails", func(a, b *conn) (Seen, error) {
			a.run("SET n 1", "WATCH n")
			b.run("INCR n")
			a.run("MULTI", "SET other 1")
			broken := a.run("EXEC")
			a.run("WATCH n")
			b.run("INCR n")
			a.run("UNWATCH", "MULTI", "SET other 1")
			right := a.run("EXEC")
			seen := Seen{Broken: "a transaction about another key after a watch that was left: " + broken, Right: "after UNWATCH: " + right}
			return seen, check(broken == "(nil)" && right == "[OK]", "%+v", seen)
		}),
		on(Redis, "isolation", "Commands of others come between those that are queued, and never between those that EXEC runs", func(a, b *conn) (Seen, error) {
			a.run("SET n 1", "MULTI", "INCR n")
			b.run("SET n 10")
			a.run("INCR n", "GET n")
			exec := a.run("EXEC")
			between, n, err := noneBetween(a, b)
			seen := Seen{
				Broken: fmt.Sprintf("n was 1 when INCR was queued; another process set it to 10, and EXEC answers %s", exec),
				Right:  fmt.Sprintf("%d transactions of two INCR beside a process that does the same: %d had something between them", n, between),
			}
			if err != nil {
				return seen, err
			}
			return seen, check(exec == "[11 12 12]" && between == 0 && n > 0, "%+v", seen)
		}),
		on(Redis, "consistency", "Redis knows no rule of yours: a transaction that makes a balance negative is as good to it as any", func(a, _ *conn) (Seen, error) {
			a.run("SET zhang 1000", "SET li 1000", "MULTI", "DECRBY zhang 1200", "INCRBY li 1200")
			exec := a.run("EXEC")
			a.run("SET zhang 1000", "SET li 1000")
			script := `if tonumber(redis.call('GET', KEYS[1])) < tonumber(ARGV[1]) then return 'refused' end
				redis.call('DECRBY', KEYS[1], ARGV[1]) redis.call('INCRBY', KEYS[2], ARGV[1]) return 'done'`
			refused := a.do("EVAL", script, "2", "zhang", "li", "1200")
			seen := Seen{
				Broken: fmt.Sprintf("1,200 from an account of 1,000: %s", exec),
				Right:  fmt.Sprintf("a script with the rule in it: %s; the accounts are %s and %s", refused, a.run("GET zhang"), a.run("GET li")),
			}
			return seen, check(exec == "[-200 2200]" && refused == "refused" && a.run("GET zhang") == "1000", "%+v", seen)
		}),
	}
}

// noneBetween runs transactions of two steps on two connections at once, and counts those
// whose second step did not see the first one's number plus one.
func noneBetween(a, b *conn) (between, n int, err error) {
	a.run("SET m 0")
	errs := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				errs <- nil
				return
			default:
				b.run("MULTI", "INCR m", "INCR m", "EXEC")
			}
		}
	}()
	for n = range 200 {
		a.run("MULTI", "INCR m", "INCR m")
		var x, y int
		if _, err := fmt.Sscanf(a.run("EXEC"), "[%d %d]", &x, &y); err != nil {
			close(stop)
			<-errs
			return between, n, err
		}
		if y != x+1 {
			between++
		}
	}
	close(stop)
	return between, n + 1, <-errs
}

// first is the beginning of an answer, up to its first sentence.
func first(text string) string {
	for _, end := range []string{", with args", " script:", " on @user_script"} {
		text, _, _ = strings.Cut(text, end)
	}
	return text
}

// scripts are experiments with Lua.
func scripts() []Experiment {
	return []Experiment{
		on(Redis, "script-fails-late", "A script that fails after a write is not undone either: all checks come before the first write", func(a, _ *conn) (Seen, error) {
			a.run("SET stock 5", "SET orders words")
			broken := a.do("EVAL", `redis.call('DECR', KEYS[1]) redis.call('HSET', KEYS[2], 'u', 1)`, "2", "stock", "orders")
			left := a.run("GET stock")
			a.run("SET stock 5")
			right := a.do("EVAL", `if redis.call('TYPE', KEYS[2]).ok ~= 'hash' then return 'refused' end
				redis.call('DECR', KEYS[1]) redis.call('HSET', KEYS[2], 'u', 1) return 'sold'`, "2", "stock", "orders")
			seen := Seen{
				Broken: fmt.Sprintf("DECR, then a write that fails (%s): the stock is %s, and nobody has an order", word(broken), left),
				Right:  fmt.Sprintf("the check first: %s; the stock is %s", right, a.run("GET stock")),
			}
			return seen, check(strings.Contains(broken, "WRONGTYPE") && left == "4" && right == "refused" && a.run("GET stock") == "5", "%+v", seen)
		}),
		on(Redis, "script-cache", "A server forgets scripts at SCRIPT FLUSH and at its restart: EVALSHA has to be ready to load them again", func(a, _ *conn) (Seen, error) {
			sha := a.do("SCRIPT", "LOAD", "return 'hello world'")
			known := a.do("SCRIPT", "EXISTS", sha)
			hello := a.do("EVALSHA", sha, "0")
			a.run("SCRIPT FLUSH")
			gone := a.do("SCRIPT", "EXISTS", sha)
			broken := a.do("EVALSHA", sha, "0")
			right := a.do("EVAL", "return 'hello world'", "0")
			seen := Seen{
				Broken: fmt.Sprintf("SCRIPT EXISTS %s, then %s after SCRIPT FLUSH; EVALSHA: %s", known, gone, word(broken)),
				Right:  fmt.Sprintf("EVAL with the text, which loads it: %s; EVALSHA: %s", right, a.do("EVALSHA", sha, "0")),
			}
			return seen, check(known == "[1]" && hello == "hello world" && gone == "[0]" && strings.HasPrefix(broken, "NOSCRIPT") && a.do("EVALSHA", sha, "0") == "hello world", "%+v", seen)
		}),
		{
			Group: Redis, Name: "script-kill", own: true,
			Claim: "A script that does not end stops everybody; SCRIPT KILL ends it only if it has not written yet",
			run:   endless,
		},
		on(Redis, "dependent-steps", "A transaction cannot use what its own steps return; a script can, in one call", func(a, b *conn) (Seen, error) {
			a.run("RPUSH packets p1 p2", "MULTI", "HEXISTS taken u", "RPOP packets")
			queued := a.run("HSET taken u ?")
			a.run("DISCARD")
			tries := contended(a, b)
			script := `if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return '1' end
				local p = redis.call('RPOP', KEYS[2]) if not p then return '-1' end
				redis.call('HSET', KEYS[1], ARGV[1], p) return p`
			got := a.do("EVAL", script, "2", "taken", "packets", "u")
			again := a.do("EVAL", script, "2", "taken", "packets", "u")
			seen := Seen{
				Broken: fmt.Sprintf("inside MULTI every answer is %s: the packet's name is not known; with WATCH, a rival made the grab take %d tries and %d commands", queued, tries, 4*tries+2),
				Right:  fmt.Sprintf("one script call: %s; the user's second: %s", got, again),
			}
			return seen, check(queued == "QUEUED" && tries > 1 && strings.HasPrefix(got, "p") && again == "1", "%+v", seen)
		}),
	}
}

// contended grabs a packet by WATCH while a rival changes the list twice.
func contended(a, b *conn) (tries int) {
	a.run("DEL packets taken", "RPUSH packets p1 p2 p3")
	for {
		tries++
		a.run("WATCH packets", "LINDEX packets -1")
		if tries <= 2 {
			b.run("LPUSH packets more")
		}
		a.run("MULTI", "RPOP packets")
		if a.run("EXEC") != "(nil)" {
			return tries
		}
	}
}

// word is the first word of an error, which names it.
func word(text string) string {
	w, _, _ := strings.Cut(text, " ")
	return w
}

// endless runs scripts that do not end, on a server of its own: one that has written cannot
// be killed without its server.
func endless(ctx context.Context, b *bench) (seen Seen, err error) {
	own, err := b.start("--busy-reply-threshold", "50")
	if err != nil {
		return seen, err
	}
	defer own.Kill()
	busy := func(script string) (answer, kill string, err error) {
		a, err := dial(ctx, own.URL())
		if err != nil {
			return "", "", err
		}
		// Before the script: a busy server takes no new client's greeting.
		c, err := dial(ctx, own.URL())
		if err != nil {
			a.close()
			return "", "", err
		}
		defer c.close()
		over := make(chan struct{})
		go func() {
			defer close(over)
			defer a.close()
			a.do("EVAL", script, "1", "k")
		}()
		// The goroutine ends with the script, or with the server.
		defer func() {
			if !strings.HasPrefix(kill, "OK") {
				own.Kill()
			}
			<-over
		}()
		for !strings.HasPrefix(answer, "BUSY") {
			if ctx.Err() != nil {
				return answer, "", ctx.Err()
			}
			answer = c.run("GET k")
		}
		return answer, c.run("SCRIPT KILL"), nil
	}
	answer, killed, err := busy(`while true do redis.call('GET', KEYS[1]) end`)
	if err != nil {
		return seen, err
	}
	_, refused, err := busy(`redis.call('SET', KEYS[1], 1) while true do redis.call('GET', KEYS[1]) end`)
	if err != nil {
		return seen, err
	}
	seen = Seen{
		Broken: fmt.Sprintf("others are told %s; SCRIPT KILL of a script that has written: %s", word(answer), word(refused)),
		Right:  fmt.Sprintf("SCRIPT KILL of one that only reads: %s. A script does a bounded amount of work", killed),
	}
	return seen, check(killed == "OK" && word(refused) == "UNKILLABLE", "%+v", seen)
}
