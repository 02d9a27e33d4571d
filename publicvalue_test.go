package dibs

import "testing"

// A public value has one spelling, so that an operator who knows it cannot choose among
// several draws by how they write it.
func TestPublicValueHasOneSpelling(t *testing.T) {
	for format, c := range map[string]struct {
		good    string
		refused []string
	}{
		"":          {"3888.6", []string{"3,888.60", "3888.60", "03888.6", "+3888.6", "3 888.6", "3888.6 ", " 3888.6", "3'888.6", "3_888.6", "3.8886e3", "３８８８.6", "3888.6 points", "3888.6.", "0xff", "ff", "3888,6"}},
		"decimal:2": {"3888.60", []string{"3,888.60", "3888.6", "3888.600", "03888.60", "+3888.60", "-0.00", ".60"}},
		"decimal:0": {"-42", []string{"-042", "-42.", "-0", "+42", "42.0"}},
		"digits:6":  {"004217", []string{"4217", "0042170", "004 217", "00421a"}},
		"hex:8":     {"00ffa1b2", []string{"00FFA1B2", "0x00ffa1b2", "ffa1b2"}},
	} {
		room := &RoomSpec{Mode: Lottery, PublicValue: "a value", PublicValueFormat: format}
		if fs := (&PublicValueSpec{Value: c.good}).Faults(room); fs != nil {
			t.Errorf("%q in the format %q: %v", c.good, format, fs)
		}
		for _, value := range c.refused {
			if fs := (&PublicValueSpec{Value: value}).Faults(room); len(fs) != 1 || fs[0].Field != "/value" {
				t.Errorf("%q in the format %q: %v", value, format, fs)
			}
		}
	}
	for _, value := range []string{"0", "-7", "3 14 15", "0.5", "00ffa1b200ffa1b200ffa1b200ffa1b2"} {
		if fs := (&PublicValueSpec{Value: value}).Faults(&RoomSpec{Mode: Lottery, PublicValue: "a value"}); fs != nil {
			t.Errorf("%q without a format: %v", value, fs)
		}
	}
	for value, want := range map[string]string{"-0.0": "0", "00": "0", "1.": "1", "Block  00AB ": "block 00ab", "3.10,5": "3.10,5", "3 14 15": "3 14 15", "03  14 5.0": "3 14 5", "12 345 678": "12345678", "1 234.50": "1234.5"} {
		if got := simplest(value); got != want || simplest(got) != got {
			t.Errorf("the simplest spelling of %q is %q, want %q", value, got, want)
		}
	}
	for _, format := range []string{"decimal", "decimal:", "decimal:-1", "decimal:02", "digits:0", "hex:201", "text", "DECIMAL:2"} {
		if formatProblem(format).EN == "" {
			t.Errorf("the format %q was taken", format)
		}
	}
}
