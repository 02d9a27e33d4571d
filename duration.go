package dibs

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a time.Duration that JSON shows as a Go-style string, `"15m"`.
type Duration time.Duration

// MarshalJSON writes the string form, `"15m0s"`.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads a Go-style string; a number is refused, since nobody
// can tell its unit.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a duration is a string such as \"15m\": %w", err)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("a duration is a string such as \"15m\": %w", err)
	}
	*d = Duration(v)
	return nil
}

// Std is d as the standard library's.
func (d Duration) Std() time.Duration { return time.Duration(d) }
