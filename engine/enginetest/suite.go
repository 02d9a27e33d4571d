package enginetest

import (
	"slices"
	"testing"
)

// Run runs every check as a subtest of t. It takes some ten seconds. With several shards
// for each campaign it runs the checks of repeats, releases, restarts, crowds, random
// operations and histories: what they do on one shard could be seen on another one.
func Run(t *testing.T, f Factory) {
	t.Helper()
	checks := Checks()
	if f.Shards > 1 {
		checks = slices.Concat(repeatChecks, releaseChecks, restartChecks, crowdChecks, randomChecks, linearChecks)
	}
	for _, c := range checks {
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
