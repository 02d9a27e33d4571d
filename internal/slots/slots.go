// Package slots finds the places of stored texts that the erasure of a user may change: ids of users, where goods went,
// and the codes of a claim. All else of a text is its frame, which no erasure changes.
//
// Two parts need to agree on these places: the ledger, which erases, and the chain over the admin log, which has to
// accept what an erasure changed, and nothing else. A text has the same frame, and as many slots, before and after an
// erasure.
package slots

import (
	"net/url"
	"regexp"
	"strings"
)

// PseudonymPrefix begins what stands in the place of an erased user.
const PseudonymPrefix = "erased-"

// Kind says what is in a slot, and what an erasure leaves there.
type Kind byte

// The kinds of slots.
const (
	// User is the id of a user; a pseudonym takes its place.
	User Kind = iota
	// Path is the id of a user in the path of a request, and Query in its query: percent-encoded.
	Path
	Query
	// Delivery is the id of an announcement's delivery, which ends with a colon and the id of a user.
	Delivery
	// Shipment says where a user's goods went, or what the user wrote to a claim; it is emptied.
	Shipment
	// Items are the codes and seats of a claim; they are emptied.
	Items
)

// OfUser reports whether the slot names a user.
func (k Kind) OfUser() bool { return k <= Delivery }

// Slot is the place of a text from the byte From to the one before To.
type Slot struct {
	Kind     Kind
	From, To int
}

// Text is a text with its slots, in their order.
type Text struct {
	Text  string
	Slots []Slot
}

// Value returns what is in a slot.
func (t *Text) Value(i int) string { return t.Text[t.Slots[i].From:t.Slots[i].To] }

// inBody finds the members of a JSON text that are slots. It reads the text as it is, without spaces between its parts, as
// dibs writes it.
var inBody = regexp.MustCompile(`"(user_id|user|sender_id|delivery_id|carrier|tracking_no|reference)":"((?:[^"\\]|\\.)*)"|"items":\[((?:"(?:[^"\\]|\\.)*",?)*)\]`)

var memberKinds = map[string]Kind{
	"user_id": User, "user": User, "sender_id": User, "delivery_id": Delivery, "carrier": Shipment, "tracking_no": Shipment, "reference": Shipment,
}

// Body finds the slots of a JSON text.
func Body(text string) Text {
	t := Text{Text: text}
	for _, at := range inBody.FindAllStringSubmatchIndex(text, -1) {
		if at[6] >= 0 {
			t.Slots = append(t.Slots, Slot{Items, at[6], at[7]})
			continue
		}
		t.Slots = append(t.Slots, Slot{memberKinds[text[at[2]:at[3]]], at[4], at[5]})
	}
	return t
}

// Target finds the slots of the address of a request: the segment of its path after one that is of users, and the member
// user_id of its query.
func Target(target string) Text {
	t := Text{Text: target}
	path, query, searched := strings.Cut(target, "?")
	before, from := "", 0
	for i, segment := range strings.Split(path, "/") {
		if i > 1 {
			switch before {
			case "accounts", "users", "followers":
				t.Slots = append(t.Slots, Slot{Path, from, from + len(segment)})
			}
		}
		before, from = segment, from+len(segment)+1
	}
	if !searched {
		return t
	}
	from = len(path) + 1
	for member := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(member, "="); name == "user_id" {
			t.Slots = append(t.Slots, Slot{Query, from + len(name) + 1, from + len(name) + 1 + len(value)})
		}
		from += len(member) + 1
	}
	return t
}

// names reports whether a slot names a user.
func (t *Text) names(i int, user string) bool {
	value := t.Value(i)
	switch t.Slots[i].Kind {
	case User:
		return value == user
	case Delivery:
		return strings.HasSuffix(value, ":"+user)
	case Path:
		plain, err := url.PathUnescape(value)
		return value == user || err == nil && plain == user
	case Query:
		plain, err := url.QueryUnescape(value)
		return value == user || err == nil && plain == user
	}
	return false
}

// Erase puts a pseudonym in a user's place, empties what the text says of shipments and, when items is set, of items. It
// returns the text with its slots then, and the numbers of the slots that it changed: none for a text that does not name
// the user.
func (t *Text) Erase(user, pseudonym string, items bool) (after Text, changed []int) {
	named := false
	for i := range t.Slots {
		named = named || t.names(i, user)
	}
	if !named {
		return *t, nil
	}
	var b strings.Builder
	rest := 0
	for i, s := range t.Slots {
		value := t.Value(i)
		is := value
		switch {
		case s.Kind == Delivery && t.names(i, user):
			is = strings.TrimSuffix(value, user) + pseudonym
		case t.names(i, user):
			is = pseudonym
		case s.Kind == Shipment, s.Kind == Items && items:
			is = ""
		}
		if is != value {
			changed = append(changed, i)
		}
		b.WriteString(t.Text[rest:s.From])
		after.Slots = append(after.Slots, Slot{s.Kind, b.Len(), b.Len() + len(is)})
		b.WriteString(is)
		rest = s.To
	}
	b.WriteString(t.Text[rest:])
	after.Text = b.String()
	return after, changed
}

// Erased returns the pseudonym that an erasure left in the slot. ok is false when no erasure leaves what is there; a slot
// that an erasure empties has no pseudonym.
func (t *Text) Erased(i int) (pseudonym string, ok bool) {
	value := t.Value(i)
	switch kind := t.Slots[i].Kind; {
	case !kind.OfUser():
		return "", value == ""
	case kind == Delivery:
		value = value[strings.LastIndexByte(value, ':')+1:]
	}
	return value, strings.HasPrefix(value, PseudonymPrefix)
}
