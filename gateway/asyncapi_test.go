package gateway

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/events"
)

// update writes the document instead of comparing it:
//
//	go test ./gateway -run TestAsyncAPI -update
var update = flag.Bool("update", false, "write docs/asyncapi.json")

const asyncAPIFile = "../docs/asyncapi.json"

// object is a JSON object.
type object = map[string]any

// clientMessages are those that clients send, serverMessages those that the
// server sends, by their type.
var (
	clientMessages = map[string]any{
		typeAuth: authMessage{}, typeClaim: claimMessage{}, typeSubscribe: topicMessage{}, typeUnsubscribe: topicMessage{}, typePing: pingMessage{},
	}
	serverMessages = map[string]any{
		typeWelcome: welcome{}, typeResult: result{}, typeCampaign: campaignMessage{}, typeSubscribed: short{}, typeUnsubscribed: short{},
		typePosition: placed{}, typeAnnouncement: announced{}, typePong: short{}, typeError: failure{}, typeGoAway: short{},
	}
)

// TestAsyncAPI: docs/asyncapi.json has every event and every message of
// WebSockets, with the members that the Go types have.
func TestAsyncAPI(t *testing.T) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(asyncAPI()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(asyncAPIFile, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stands, err := os.ReadFile(asyncAPIFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(stands, out.Bytes()) {
		t.Error("docs/asyncapi.json is not what the types say: go test ./gateway -run TestAsyncAPI -update")
	}
}

// TestAsyncAPIIsWhole: every type of message that this package has is in the
// document.
func TestAsyncAPIIsWhole(t *testing.T) {
	source, err := os.ReadFile("message.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(source)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
		word := strings.Trim(value, `"`)
		if !ok || !strings.HasPrefix(name, "type") || word == value {
			continue
		}
		found++
		if clientMessages[word] == nil && serverMessages[word] == nil {
			t.Errorf("the message %s is not in the document", word)
		}
	}
	if found != len(clientMessages)+len(serverMessages) {
		t.Errorf("message.go has %d types, the document %d", found, len(clientMessages)+len(serverMessages))
	}
}

// asyncAPI makes the document, version 3.0 of AsyncAPI.
func asyncAPI() object {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	registry.RegisterTypeAlias(reflect.TypeFor[dibs.Duration](), reflect.TypeFor[string]())
	messages, channels, operations := object{}, object{}, object{}
	channel := func(id, address, about string, servers []string, names []string) {
		list := object{}
		for _, n := range names {
			list[n] = object{"$ref": "#/components/messages/" + n}
		}
		var at []object
		for _, s := range servers {
			at = append(at, object{"$ref": "#/servers/" + s})
		}
		channels[id] = object{"address": address, "description": about, "servers": at, "messages": list}
	}
	operation := func(id, action, of, about string, names []string) {
		var list []object
		for _, n := range names {
			list = append(list, object{"$ref": "#/channels/" + of + "/messages/" + n})
		}
		operations[id] = object{"action": action, "channel": object{"$ref": "#/channels/" + of}, "summary": about, "messages": list}
	}
	sent := websocketMessages(registry, messages, "client", clientMessages)
	received := websocketMessages(registry, messages, "server", serverMessages)
	told := eventMessages(registry, messages)
	channel("websocket", "/v1/ws", "One connection for claims, results and what happens to campaigns: docs/GATEWAY.md.", []string{"dibs"}, slices.Concat(sent, received))
	channel("events", "events", "The feed of a sink or a webhook: docs/EVENTS.md.", []string{"broker"}, told)
	// The actions are those of dibs, whose document this is.
	operation("takeMessages", "receive", "websocket", "Messages that clients send.", sent)
	operation("sendMessages", "send", "websocket", "Messages that the server sends.", received)
	operation("publishEvents", "send", "events", "Events that dibs publishes, at least once and in order for each subject.", told)
	return object{
		"asyncapi": "3.0.0",
		"info": object{
			"title": "dibs", "version": "1", "license": object{"name": "Apache-2.0"},
			"description": "Messages over WebSockets, and the events that brokers and webhooks receive.",
		},
		"defaultContentType": "application/json",
		"servers": object{
			"dibs":   object{"host": "127.0.0.1:8080", "protocol": "ws", "description": "A dibs node; wss behind TLS."},
			"broker": object{"host": "127.0.0.1:6379", "protocol": "redis", "description": "A sink of --events, or an endpoint that takes webhooks."},
		},
		"channels": channels, "operations": operations,
		"components": object{"messages": messages, "schemas": registry.Map()},
	}
}

// websocketMessages adds the messages of one side, and returns their names.
func websocketMessages(registry huma.Registry, to object, side string, all map[string]any) []string {
	var names []string
	for _, word := range slices.Sorted(maps.Keys(all)) {
		name := side + "-" + word
		names = append(names, name)
		to[name] = object{
			"name": word, "title": word + ", from the " + side,
			"payload": flat(registry, reflect.TypeOf(all[word]), word),
		}
	}
	return names
}

// flat is the schema of a message: its own members and those of what it embeds,
// as encoding/json writes them. A member of the outer type hides one of the inner.
func flat(registry huma.Registry, of reflect.Type, word string) object {
	properties, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(of) {
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" || name == "-" || properties[name] != nil {
			continue
		}
		properties[name] = registry.Schema(f.Type, true, "")
		// The fields that a refusal embeds are there only when something was refused.
		if rest != "omitempty" && len(f.Index) == 1 && name != "id" {
			required = append(required, name)
		}
	}
	properties["type"] = object{"const": word}
	return object{"type": "object", "properties": properties, "required": required}
}

// eventMessages adds every event, and returns their names.
func eventMessages(registry huma.Registry, to object) []string {
	var names []string
	for _, word := range events.EventTypes() {
		data := object{"type": "object"}
		if strings.HasPrefix(word, events.EventTypePrefix+"claim.") {
			data = object{"$ref": registry.Schema(reflect.TypeFor[events.ClaimEventData](), true, "").Ref}
		} else if word == events.EventTypeAnnounced {
			data = object{"$ref": registry.Schema(reflect.TypeFor[events.PushEventData](), true, "").Ref}
		}
		name := strings.TrimPrefix(word, events.EventTypePrefix)
		names = append(names, name)
		text := object{"type": "string"}
		to[name] = object{
			"name": word, "title": name, "contentType": "application/cloudevents+json",
			"payload": object{
				"type": "object", "required": []string{"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "data"},
				"properties": object{
					"specversion": object{"const": "1.0"}, "id": text, "source": object{"const": "/dibs"}, "type": object{"const": word},
					"subject": text, "time": object{"type": "string", "format": "date-time"}, "datacontenttype": object{"const": "application/json"},
					"data": data,
				},
			},
		}
	}
	return names
}
