package dibs

// callMutex excludes others for as long as an engine or a ledger is asked, which
// may take seconds. It is a channel and not a sync.Mutex, so that in a bubble of
// testing/synctest a goroutine that waits for it counts as waiting, and time
// passes. newCallMutex makes one; the zero value blocks for ever.
type callMutex chan struct{}

func newCallMutex() callMutex { return make(callMutex, 1) }

// Lock waits for its turn.
func (m callMutex) Lock() { m <- struct{}{} }

// Unlock lets the next one in.
func (m callMutex) Unlock() { <-m }
