package experiments

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"time"
)

// A way to sell in two steps, and the moment between them.
type twoSteps func(s *shop, moment func() error) error

// sellers are what workers do, by the name of the experiment.
var sellers = map[string]twoSteps{
	"killed-before-message": func(s *shop, moment func() error) error {
		s.take(0)
		if err := moment(); err != nil {
			return err
		}
		s.c.run("RPUSH sales u1")
		return nil
	},
	"killed-after-message": func(s *shop, moment func() error) error {
		s.c.run("RPUSH sales u1")
		if err := moment(); err != nil {
			return err
		}
		s.take(0)
		return nil
	},
	"killed-with-sum": func(s *shop, moment func() error) error {
		sum := 0
		for range 4 {
			s.take(0)
			sum++
		}
		if err := moment(); err != nil {
			return err
		}
		s.exec(`UPDATE stock SET n = n - ` + strconv.Itoa(sum))
		return s.err
	},
}

// atMoment is what a worker says between its two steps. It goes on when it reads a line.
const atMoment = "between the steps"

// Work is the process that experiments kill: args are the experiment, the address of
// Redis and the file of the database. It writes a line to out between its two steps, and
// ends with an error when in ends before a line came.
func Work(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 3 || sellers[args[0]] == nil {
		return errors.New("experiments: a worker is told an experiment with a worker, an address and a file")
	}
	s, err := openShop(ctx, args[1], args[2])
	if err != nil {
		return err
	}
	err = sellers[args[0]](s, func() error {
		fmt.Fprintln(out, atMoment)
		_, err := bufio.NewReader(in).ReadString('\n')
		return err
	})
	return errors.Join(err, s.close())
}

// sold runs a worker to the moment between its two steps. There it is killed, or told to
// go on.
func (s *shop) sold(experiment string, kill bool) {
	s.step(func(ctx context.Context) error { return s.work(ctx, experiment, kill) })
}

func (s *shop) work(ctx context.Context, experiment string, kill bool) error {
	if len(s.worker) == 0 {
		return errors.New("experiments: no command for the process to kill")
	}
	cmd := exec.CommandContext(ctx, s.worker[0], append(s.worker[1:len(s.worker):len(s.worker)], experiment, s.url, s.file)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err == nil && said != atMoment+"\n" {
		err = fmt.Errorf("experiments: the process says %q", said)
	}
	if kill || err != nil {
		err = errors.Join(err, cmd.Process.Kill())
		var exit *exec.ExitError
		if end := cmd.Wait(); !errors.As(end, &exit) || exit.Exited() {
			err = errors.Join(err, fmt.Errorf("experiments: the process was not killed: %w", end))
		}
		return err
	}
	_, err = io.WriteString(in, "\n")
	return errors.Join(err, cmd.Wait())
}

func killedBeforeMessage(s *shop) (seen Seen, err error) {
	s.load(time.Minute)
	s.sold("killed-before-message", true)
	taken, orders := s.c.run("GET stock"), s.c.run("LLEN sales")
	// One step has both: the count and the message are taken and written, or neither is.
	s.c.run("SET stock 10")
	both := s.c.do("EVAL", `local left = redis.call('INCRBY', KEYS[1], -1) redis.call('RPUSH', KEYS[2], ARGV[1]) return left`, "2", "stock", "sales", "u1")
	right := s.c.run("LLEN sales")
	seen = Seen{
		Broken: fmt.Sprintf("the count went to %s, the process was killed, and %s messages came: one unit is lost", taken, orders),
		Right:  fmt.Sprintf("count and message in one script, as the journal of dibs: %s left, %s message", both, right),
	}
	return seen, check(taken == "9" && orders == "0" && both == "9" && right == "1", "%+v", seen)
}

func killedAfterMessage(s *shop) (seen Seen, err error) {
	s.load(time.Minute)
	s.sold("killed-after-message", true)
	left, orders := s.c.run("GET stock"), s.c.run("LLEN sales")
	s.c.run("DEL sales")
	s.c.do("EVAL", `redis.call('RPUSH', KEYS[2], ARGV[1]) return redis.call('INCRBY', KEYS[1], -1)`, "2", "stock", "sales", "u1")
	rightLeft, rightOrders := s.c.run("GET stock"), s.c.run("LLEN sales")
	seen = Seen{
		Broken: fmt.Sprintf("%s order is on its way and %s of 10 are still for sale: one too many will be sold", orders, left),
		Right:  fmt.Sprintf("both in one script: %s order, %s left", rightOrders, rightLeft),
	}
	return seen, check(left == "10" && orders == "1" && rightLeft == "9" && rightOrders == "1", "%+v", seen)
}

func killedWithSum(s *shop) (seen Seen, err error) {
	s.load(time.Minute)
	s.sold("killed-with-sum", true)
	broken := s.left()
	// The next start reads the count back, before anything loads the database again.
	n := 0
	s.step(func(context.Context) error {
		n, err = strconv.Atoi(s.c.run("GET stock"))
		return err
	})
	s.set(n)
	right := s.left()
	seen = Seen{
		Broken: fmt.Sprintf("4 were sold and added up, the process was killed, and the database still has %d", broken),
		Right:  fmt.Sprintf("read back from the count at the next start: %d. When the count is gone as well, the 4 are lost", right),
	}
	return seen, check(broken == 10 && right == 6, "%+v", seen)
}
