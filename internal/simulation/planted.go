package simulation

// Planted are faults that a run can be given on purpose. Each brings back one
// that dibs had, or that its engine had: what finds it is worth something.
type Planted struct {
	// LeaseNeedsMemory: a server without memory gives no lease.
	LeaseNeedsMemory bool
	// ForgetfulOpen: an engine takes a journal that was trimmed for one that has
	// nothing more to say.
	ForgetfulOpen bool
	// LoadsStay: a load that was broken off is never retired.
	LoadsStay bool
	// ForgetsAtOnce: a shard of which nothing is there is taken off the list at
	// once, while its loader pauses.
	ForgetsAtOnce bool
	// OneSign: a stock reference that was counted is a repeat, whatever its sign.
	OneSign bool
}
