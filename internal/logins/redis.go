package logins

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"syscall"

	"github.com/redis/rueidis"
)

// Redis has a client of Redis ask login for user and password at each new connection; nil
// answers mean those of the options. Call it when the options are complete.
func Redis(opt *rueidis.ClientOption, login func() *url.Userinfo) {
	first := rueidis.AuthCredentials{Username: opt.Username, Password: opt.Password}
	opt.AuthCredentialsFn = func(of rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		now := login()
		_, sentinel := of.Address.(sentinelAddress)
		switch {
		case sentinel:
			return rueidis.AuthCredentials{Username: opt.Sentinel.Username, Password: opt.Sentinel.Password}, nil
		case now == nil:
			return first, nil
		}
		password, _ := now.Password()
		return rueidis.AuthCredentials{Username: now.Username(), Password: password}, nil
	}
	if opt.Sentinel.MasterSet != "" && opt.DialCtxFn == nil {
		markSentinels(opt)
	}
}

// markSentinels has connections to sentinels say so by their address. The library asks for
// the login of a sentinel as for that of a server, and servers' logins are nothing to it.
// Sentinels have a dialer of their own in the options, which is told by its Control.
func markSentinels(opt *rueidis.ClientOption) {
	opt.Sentinel.Dialer.Control = func(string, string, syscall.RawConn) error { return nil }
	opt.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (conn net.Conn, err error) {
		if config != nil {
			conn, err = (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
		} else {
			conn, err = dialer.DialContext(ctx, "tcp", address)
		}
		if err == nil && dialer.Control != nil {
			conn = sentinelConn{conn}
		}
		return conn, err
	}
}

// sentinelConn is a connection to a sentinel.
type sentinelConn struct{ net.Conn }

func (c sentinelConn) RemoteAddr() net.Addr { return sentinelAddress{c.Conn.RemoteAddr()} }

// sentinelAddress is where a sentinel is.
type sentinelAddress struct{ net.Addr }
