package ci_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/gate"
	"github.com/dibs-dev/dibs/internal/web"
)

// TestDocumentedAnswers reads each answer, event and message that a page shows, and has
// the server's own code write it again: the same members stand there, in the same order,
// and titles, codes and statuses are those of the registry.
func TestDocumentedAnswers(t *testing.T) {
	compared := map[string]int{}
	for _, page := range readers(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks(string(text), "json") {
			var shown bytes.Buffer
			if err := json.Compact(&shown, []byte(block)); err != nil {
				t.Errorf("%s: %v: %s", page, err, block)
				continue
			}
			kind, written, err := writtenAgain(shown.Bytes())
			if err != nil || !bytes.Equal(shown.Bytes(), written) {
				t.Errorf("%s shows, as %s:\n%s\nit is written as:\n%s\n%v", page, kind, shown.Bytes(), written, err)
			}
			compared[kind]++
		}
	}
	if compared["a problem"] < 20 || compared["a claim"] < 4 || compared["an event"] < 2 || compared["a place"] < 2 {
		t.Errorf("compared are only %v", compared)
	}
}

// writtenAgain says what an answer is, by members that no other has, and writes it as
// the server would.
func writtenAgain(shown []byte) (kind string, written []byte, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(shown, &members); err != nil {
		return "JSON", nil, err
	}
	has := func(name string) bool { return members[name] != nil }
	switch {
	case strings.HasPrefix(string(members["type"]), `"urn:dibs:problem:`):
		written, err = problemAgain(shown)
		return "a problem", written, err
	case has("status_code"):
		written, err = again[api.ClaimView](shown)
		return "a claim", written, err
	case has("admitted_up_to"):
		written, err = again[gate.PlaceView](shown)
		return "a place", written, err
	case has("specversion"):
		written, err = eventAgain(shown)
		return "an event", written, err
	case has("change"):
		written, err = again[events.CampaignNews](shown)
		return "the data of an event", written, err
	case has("delivery_id"):
		written, err = again[struct {
			Type string `json:"type"`
			events.AnnouncedView
		}](shown)
		return "a message", written, err
	case has("gate"):
		// It is what people send: durations may be written in several ways.
		_, err = again[struct {
			Gate *dibs.GateSpec `json:"gate"`
		}](shown)
		return "a part of a campaign", shown, err
	}
	return "something", nil, fmt.Errorf("no answer is like this")
}

// again reads a text strictly as a T, and writes that.
func again[T any](text []byte) ([]byte, error) {
	var v T
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// eventAgain is again for an event and the data in it.
func eventAgain(shown []byte) ([]byte, error) {
	written, err := again[events.Event](shown)
	if err != nil {
		return nil, err
	}
	var e events.Event
	if err := json.Unmarshal(written, &e); err != nil {
		return nil, err
	}
	data := again[events.ClaimEventData]
	if e.Type == events.EventTypeAnnounced {
		data = again[events.PushEventData]
	}
	if e.Data, err = data(e.Data); err != nil {
		return nil, err
	}
	return e.Encode()
}

// problemAgain writes a problem out of its reason and of what belongs to the case alone.
func problemAgain(shown []byte) ([]byte, error) {
	var v api.Problem
	d := json.NewDecoder(bytes.NewReader(shown))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	for i := range dibs.ReasonCount {
		r := dibs.Reason(i)
		if info := r.Info(); info.Word != v.Reason || info.Status != v.Status {
			continue
		}
		p := web.Problem{Reason: r, Detail: dibs.Text{EN: v.Detail}, Effect: v.Effect, ClaimIDs: v.ClaimIDs, ResultCode: v.ResultCode}
		for _, f := range v.Errors {
			p.Faults = append(p.Faults, dibs.Fault{Field: f.Pointer, Problem: dibs.Text{EN: f.Detail}})
		}
		if v.StartsAt != nil {
			p.StartsAt = *v.StartsAt
		}
		if v.EndsAt != nil {
			p.EndsAt = *v.EndsAt
		}
		if v.Remaining != nil {
			p.Remaining = *v.Remaining
		}
		if v.Position != nil {
			p.Position = *v.Position
		}
		return p.Append(nil, false, v.RequestID), nil
	}
	return nil, fmt.Errorf("no reason is %q with status %d", v.Reason, v.Status)
}
