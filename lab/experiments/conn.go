package experiments

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// conn is one connection, as one process has it: transactions and WATCH belong to it. It
// speaks the protocol itself, a command at a time: experiments send what a client would
// refuse to send, and show each answer as it came.
type conn struct {
	ctx context.Context
	net net.Conn
	in  *bufio.Reader
}

// connect opens a connection of its own.
func (b *bench) connect(ctx context.Context) (*conn, error) { return dial(ctx, b.url) }

// answerWithin is how long an answer may take.
const answerWithin = 20 * time.Second

func dial(ctx context.Context, url string) (*conn, error) {
	opt, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	var d interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = &net.Dialer{Timeout: answerWithin}
	if opt.TLSConfig != nil {
		d = &tls.Dialer{Config: opt.TLSConfig}
	}
	if len(opt.InitAddress) != 1 {
		return nil, errors.New("experiments: one server is needed")
	}
	to, err := d.DialContext(ctx, "tcp", opt.InitAddress[0])
	if err != nil {
		return nil, err
	}
	c := &conn{ctx: ctx, net: to, in: bufio.NewReader(to)}
	if opt.Password != "" {
		auth := []string{"AUTH", opt.Password}
		if opt.Username != "" {
			auth = []string{"AUTH", opt.Username, opt.Password}
		}
		err = c.want("OK", auth...)
	}
	if err == nil && opt.SelectDB != 0 {
		err = c.want("OK", "SELECT", strconv.Itoa(opt.SelectDB))
	}
	if err == nil {
		err = c.want("PONG", "PING")
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// close ends the connection. All that it has sent was answered.
func (c *conn) close() { _ = c.net.Close() }

// do sends a command and returns the answer as redis-cli would show it: an error begins
// with its word, as in EXECABORT, no value is (nil), and a list has brackets. An answer
// that does not come is told as one: no experiment takes it for what it waits for.
func (c *conn) do(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	err := c.net.SetDeadline(time.Now().Add(answerWithin))
	if err == nil {
		_, err = io.WriteString(c.net, b.String())
	}
	answer := ""
	if err == nil {
		answer, err = c.read()
	}
	if err != nil {
		return "no answer: " + err.Error()
	}
	return answer
}

// read reads one answer of RESP2.
func (c *conn) read() (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, text := line[0], strings.TrimRight(line[1:], "\r\n")
	if kind == '+' || kind == ':' {
		return text, nil
	}
	if kind == '-' {
		return strings.TrimPrefix(text, "ERR "), nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || kind != '$' && kind != '*' {
		return "", fmt.Errorf("experiments: %q is no answer", line)
	}
	switch {
	case n < 0:
		return "(nil)", nil
	case kind == '$':
		body := make([]byte, n+2)
		_, err := io.ReadFull(c.in, body)
		return string(body[:n]), err
	}
	texts := make([]string, n)
	for i := range texts {
		if texts[i], err = c.read(); err != nil {
			return "", err
		}
	}
	return "[" + strings.Join(texts, " ") + "]", nil
}

// want sends a command whose answer is part of the experiment's plan.
func (c *conn) want(answer string, args ...string) error {
	if got := c.do(args...); got != answer {
		return fmt.Errorf("%s answered %s, not %s", strings.Join(args, " "), got, answer)
	}
	return nil
}

// run sends commands that have no spaces in their words, and returns the last answer.
func (c *conn) run(commands ...string) (last string) {
	for _, text := range commands {
		last = c.do(strings.Fields(text)...)
	}
	return last
}

// check fails an experiment that did not show what it says.
func check(seen bool, format string, args ...any) error {
	if seen {
		return nil
	}
	return fmt.Errorf("not shown: "+format, args...)
}

// two opens the connections of two processes.
func (b *bench) two(ctx context.Context, do func(a, c *conn) (Seen, error)) (Seen, error) {
	first, err := b.connect(ctx)
	if err != nil {
		return Seen{}, err
	}
	defer first.close()
	second, err := b.connect(ctx)
	if err != nil {
		return Seen{}, err
	}
	defer second.close()
	return do(first, second)
}
