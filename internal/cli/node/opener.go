package node

import (
	"fmt"
	"os/exec"
	"strings"
)

// openers are the programs that open an address in the user's browser, by operating system.
// Each comes with the system or its desktop; any other system is taken for one with xdg-utils.
var openers = map[string][]string{
	"darwin":  {"open"},
	"windows": {"rundll32", "url.dll,FileProtocolHandler"},
}

// openerFor returns the command that opens an address on an operating system, as runtime.GOOS names it.
func openerFor(goos, address string) []string {
	command := openers[goos]
	if command == nil {
		command = []string{"xdg-open"}
	}
	return append(append([]string{}, command...), address)
}

// openInBrowser has the system open an address, and returns once its program runs.
// ended gets the program's error, nil for none: some openers last as long as the browser does, and dev does not wait.
// The address stands in the program's arguments, which other users of the machine may see: it must be worth nothing
// once the browser has opened it, as a code that signs in once is.
func openInBrowser(goos, address string, ended func(error)) error {
	command := openerFor(goos, address)
	cmd := exec.Command(command[0], command[1:]...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", command[0], err)
	}
	go func() {
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("%s: %w", strings.Join(command[:len(command)-1], " "), err)
		}
		ended(err)
	}()
	return nil
}
