package sqlledger

import "time"

// BeatEvery makes a journal in a server look after its lock more often. It is
// called before Acquire.
func BeatEvery(t *JournalTable, d time.Duration) { t.lock.(*ownerLock).every = d }

// PathOf returns the file of a journal.
func PathOf(t *JournalTable) string { return t.place }

// AssignItem is the statement that gives an item to a claim.
const AssignItem = sqliteAssignItem
