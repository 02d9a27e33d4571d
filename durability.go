package dibs

// The levels of durability: what a yes survives. docs/GUARANTEES.md says how
// far each goes, and what it asks of Redis.
const (
	// LevelNone promises nothing of what is answered.
	LevelNone = "none"
	// LevelRelaxed survives a crash of any process; a power cut may take about
	// the last two seconds.
	LevelRelaxed = "relaxed"
	// LevelDurable survives a power cut: an answer waits for the disk.
	LevelDurable = "durable"
	// LevelReplicated is LevelDurable, and replicas have it before an answer.
	LevelReplicated = "replicated"
	// LevelLedgered survives the loss of the engine: the service answers when
	// the ledger has it. No engine gives it by itself.
	LevelLedgered = "ledgered"
)

// Levels returns all levels, the weakest first.
func Levels() []string {
	return []string{LevelNone, LevelRelaxed, LevelDurable, LevelReplicated, LevelLedgered}
}
