package dibs

import "strconv"

// LimitSpec bounds how often claims of a campaign are made.
type LimitSpec struct {
	// Per is whose claims are counted together.
	Per string `json:"per" doc:"whose claims are counted together" enum:"user,address,device,campaign"`
}

// limitPers are what a limit may be per.
var limitPers = map[string]bool{"user": true, "address": true, "device": true, "campaign": true}

// limitFaults lists what is wrong with a campaign's limits.
func limitFaults(field string, limits []LimitSpec) []Fault {
	var fs []Fault
	for i, l := range limits {
		if !limitPers[l.Per] {
			fs = append(fs, Fault{field + "/" + strconv.Itoa(i) + "/per", Text{"must be user, address, device or campaign", "必须是 user、address、device 或 campaign"}})
		}
	}
	return fs
}
