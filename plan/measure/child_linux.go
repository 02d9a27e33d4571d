package measure

import (
	"os/exec"
	"syscall"
)

// endWithThis has a process end when this one does, however that happens.
func endWithThis(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
