package dibs

import (
	"encoding/json"
	"testing"
	"time"
)

func TestDurationsAreStrings(t *testing.T) {
	var d Duration
	for _, bad := range []string{`15`, `"15"`, `"soon"`, `null1`} {
		if err := json.Unmarshal([]byte(bad), &d); err == nil {
			t.Errorf("%s was read as %v", bad, d)
		}
	}
	if err := json.Unmarshal([]byte(`"15m"`), &d); err != nil || d.Std() != 15*time.Minute {
		t.Fatalf("%v, %v", d, err)
	}
}
