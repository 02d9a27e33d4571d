package dibs

// AudienceSpec is who may claim: exactly one field is set.
type AudienceSpec struct {
	// List is the id of an imported list of users.
	List string `json:"list,omitempty" doc:"the id of an imported list of users"`
	// FollowersOf is a merchant, whose followers may claim.
	FollowersOf string `json:"followers_of,omitempty" doc:"a merchant, whose followers may claim"`
}

// faults lists what is wrong with an audience.
func (a *AudienceSpec) faults(field string) []Fault {
	if (a.List == "") == (a.FollowersOf == "") {
		return []Fault{{field, Text{"must have exactly one of list, followers_of", "必须且只能有 list、followers_of 之一"}}}
	}
	if a.List != "" && !isID(a.List) {
		return []Fault{{field + "/list", badID}}
	}
	if a.FollowersOf != "" && !isID(a.FollowersOf) {
		return []Fault{{field + "/followers_of", badID}}
	}
	return nil
}
