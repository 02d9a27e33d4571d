package enginetest

import (
	"slices"
	"testing"
)

// Run runs every check as a subtest of t. It takes some ten seconds.
func Run(t *testing.T, f Factory) {
	t.Helper()
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(t, f); err != nil {
				t.Error(err)
			}
		})
	}
}

// Checks lists the checks of the suite: short ones first, those under load and
// at random last.
func Checks() []Check {
	return slices.Concat(
		abilityChecks, grantChecks, windowChecks, refusalChecks, boundChecks, repeatChecks, itemChecks,
		releaseChecks, stockChecks, transferChecks, shardChecks, configureChecks, readChecks, journalChecks,
		closingChecks, restartChecks, productChecks, crowdChecks, randomChecks, linearChecks,
	)
}
