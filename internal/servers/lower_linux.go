package servers

import (
	"os/exec"
	"syscall"
)

// lower makes the command run as the server's account, and end with this
// process.
func (s *Server) lower(cmd *exec.Cmd) error {
	// Pdeathsig follows the thread that starts the process, see launch.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if s.account == nil {
		return nil
	}
	uid, gid, err := ids(s.account)
	if err != nil {
		return err
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	return nil
}
