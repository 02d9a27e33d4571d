package sqlledger

// PathOf returns the file of a journal.
func PathOf(t *JournalTable) string { return t.place }
