package simulation

// Planted are faults that a run can be given on purpose. Each brings back one that
// dibs had: that a simulation finds nothing is worth as much as what it would find.
type Planted struct {
	// Unfenced: the ledger takes batches that were read under an earlier epoch, and
	// gives a shard to any server that asks.
	Unfenced bool
	// ForgetfulEnd: a journal that was trimmed to nothing does not know its end.
	ForgetfulEnd bool
	// LeaseNeedsMemory: a server without memory gives no lease.
	LeaseNeedsMemory bool
	// DropsAtOnce: a command to a shard that is not open is dropped by a node that
	// takes the campaign to be over, while another one may be loading the shard.
	DropsAtOnce bool
	// LoadsStay: a load that was broken off is never retired.
	LoadsStay bool
	// ListedOnce: a shard is listed before it is shut, and not again after, when
	// somebody may have taken it off the list.
	ListedOnce bool
	// OneRef: a restock and a withdrawal by one reference are one change to the
	// engine.
	OneRef bool
	// MovesUnseen: a shard does not say what has left it for other shards, so that
	// units on their way are taken for sold.
	MovesUnseen bool
	// EarlierUnasked: a campaign with more shards than before does not ask those that a
	// user may be on from before.
	EarlierUnasked bool
	// AnyNumber: a shard decides claims that came by another number of shards than its own.
	AnyNumber bool
	// MovesLost: the ledger has the units of a transfer, and the recipient's command is
	// dropped.
	MovesLost bool
	// TakenTwice: a load takes the units of a transfer that was settled ahead once more,
	// since the transfer stands in the journal too.
	TakenTwice bool
}
