package sqldb

// Level is how serious a Finding is.
type Level string

// The levels. At LevelWarn the database works and something may go wrong that
// need not; at LevelFail it does not work, or a promise would not hold.
const (
	LevelOK   Level = "OK"
	LevelWarn Level = "WARN"
	LevelFail Level = "FAIL"
)

// Finding is one thing that Examine looked at. Its texts are for people, in one
// line each, and hold no secrets.
type Finding struct {
	Level   Level
	Subject string
	// Found is what is there, Wanted what should be, Remedy what to do; the
	// last two are empty at LevelOK.
	Found, Wanted, Remedy string
}

// keeps is the finding about a setting that must have a value for commits to be kept.
// remedy is "set NAME = VALUE" when it is empty.
func keeps(name, value, wanted, remedy string) Finding {
	f := Finding{Level: LevelOK, Subject: name, Found: value}
	if value == wanted {
		return f
	}
	if remedy == "" {
		remedy = "set " + name + " = " + wanted
	}
	f.Level, f.Wanted, f.Remedy = LevelFail, wanted, remedy
	return f
}

// remedies are those of the settings that are not as they must be.
func remedies(found []Finding) (all []string) {
	for _, f := range found {
		if f.Level != LevelOK {
			all = append(all, f.Remedy)
		}
	}
	return all
}
