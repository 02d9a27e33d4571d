package sqlledger

// PathOf returns the file of a journal.
func PathOf(t *JournalTable) string { return t.place }

// AssignItem is the statement that gives an item to a claim.
const AssignItem = assignItem
