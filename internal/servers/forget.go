package servers

import "testing"

// LoseCommits has the server answer, from now on, before what it commits is safe from a
// power cut. It returns the setting that does so, with what it is and has to be, and what
// puts it right, which the end of the test does too. Who is connected notices soon.
func (s *Server) LoseCommits(t testing.TB) (setting, is, wanted string, right func()) {
	t.Helper()
	exec := func(statements []string) {
		t.Helper()
		if err := s.Exec("", statements...); err != nil {
			t.Fatal(err)
		}
	}
	right = func() { t.Helper(); exec(s.k.right) }
	t.Cleanup(right)
	exec(s.k.wrong)
	return s.k.losing[0], s.k.losing[1], s.k.losing[2], right
}
