package servers

import "testing"

// Database returns a server, which get starts unless it runs, and the address and
// the name of an empty database on it that is a test's own until the test ends. The
// test closes what it opens there.
// An error of the server, or of giving the database back, fails the test.
func Database(t testing.TB, get func() (*Server, error)) (s *Server, url, name string) {
	t.Helper()
	s, err := get()
	if err != nil {
		t.Fatal(err)
	}
	url, name = s.DatabaseFor(t)
	return s, url, name
}

// DatabaseFor returns the address and the name of such a database on a server.
func (s *Server) DatabaseFor(t testing.TB) (url, name string) {
	t.Helper()
	url, name, drop, err := s.Database()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(); err != nil {
			t.Error(err)
		}
	})
	return url, name
}
