package remote

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
)

// given returns the value of a flag; nil when the flag was not given, so that the
// server's default holds.
func given[T any](cmd *cobra.Command, flag string, value T) *T {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	return &value
}

// givenDuration is given for a duration.
func givenDuration(cmd *cobra.Command, flag string, value time.Duration) *dibs.Duration {
	return given(cmd, flag, dibs.Duration(value))
}
