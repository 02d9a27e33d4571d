package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi/internal/apidocs"
	"github.com/dibs-dev/dibs/httpapi/internal/signin"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/api"
)

// about is the text that heads the document.
const about = `dibs decides who gets things that run out: flash sales, coupons and red packets.

Times are RFC 3339 in UTC, durations look like ` + "`15m`" + `, money is an object with integer minor units. Unknown fields are refused.
Lists take ` + "`limit`" + ` and ` + "`cursor`" + ` and answer ` + "`items`" + ` and ` + "`next_cursor`" + `, which is empty at the end.
Every refusal and error is an ` + "`application/problem+json`" + ` document, in Chinese when ` + "`Accept-Language`" + ` prefers it.
A POST with an ` + "`Idempotency-Key`" + ` can be repeated: the repeat returns the first result with status 200, or 202 where that waits for a second person, and ` + "`Idempotent-Replayed: true`" + `.`

// The tags group the routes for readers.
const (
	tagCatalog  = "Campaigns"
	tagUser     = "Claims"
	tagGateway  = "Gateway"
	tagGates    = "Waiting rooms, lotteries, tickets"
	tagMoney    = "Money"
	tagSteps    = "Claims after the grant"
	tagAdmin    = "Admin: campaigns"
	tagProducts = "Admin: products"
	tagEvents   = "Events"
	tagAccess   = "Admin: access"
	tagUsers    = "Admin: data of users"
	tagOps      = "Operations"
	tagPages    = "Pages"
)

// apiConfig is the document's head and huma's settings.
// Each type that an answer can have needs a format here.
func apiConfig(version string) huma.Config {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	registry.RegisterTypeAlias(reflect.TypeFor[dibs.Duration](), reflect.TypeFor[durationText]())
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "dibs", Version: version, Description: about,
				License: &huma.License{Name: "Apache License 2.0", Identifier: "Apache-2.0"},
			},
			// Clients that are generated from the document are told the address by their
			// users.
			Servers: []*huma.Server{{URL: "/", Description: "The server that this document comes from."}},
			Tags: []*huma.Tag{
				{Name: tagCatalog, Description: "What is on offer."},
				{Name: tagUser, Description: "Claim, and see what you have."},
				{Name: tagGateway, Description: "Long-lived connections: claims and results, and changes of campaigns."},
				{Name: tagGates, Description: "Wait for your turn, register for a draw, fetch a ticket."},
				{Name: tagMoney, Description: "Accounts: what comes in from outside, and what red packets move. A red packet is a campaign of the kind `redpacket`: its shares are claimed like units, and credited within a second or two."},
				{Name: tagSteps, Description: "Payment, refund, use and shipping."},
				{Name: tagAdmin, Description: "Draft, publish and watch campaigns."},
				{Name: tagProducts, Description: "What campaigns sell or give."},
				{Name: tagEvents, Description: "Everything that happens, as events, and the webhooks that receive them."},
				{Name: tagAccess, Description: "API keys, the console's sign-in, and what administrators did."},
				{Name: tagUsers, Description: "Show the data of a user, and erase it."},
				{Name: tagPages, Description: "HTML for people."},
				{Name: tagOps, Description: "Health, readiness and metrics."},
			},
			Components: &huma.Components{
				Schemas: registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					apidocs.SchemeUser: {Type: "http", Scheme: "bearer", BearerFormat: "JWT", Description: "A user's token; `sub` is the user."},
					apidocs.SchemeKey:  {Type: "http", Scheme: "bearer", Description: "An API key, as `dibs key create` prints it."},
				},
			},
		},
		Formats:       map[string]huma.Format{web.TypeJSON[0]: format, web.TypeProblem[0]: format, typeCSV: format},
		DefaultFormat: web.TypeJSON[0],
	}
}

// durationText is how a duration looks in JSON.
type durationText string

// Schema says what a duration looks like.
func (durationText) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{
		Type: huma.TypeString, Pattern: web.DurationPattern,
		Description: "a duration such as 15m", Examples: []any{"15m"},
	}
	s.PrecomputeMessages()
	return s
}

// document is the OpenAPI document while routes are added to it.
// It is filled before the first request, by one goroutine, and does not change after.
type document struct {
	huma    huma.API
	schemas huma.Registry
	// examples are bodies by operation, as they are written.
	examples map[string]string
	// ids are the operations that it describes.
	ids map[string]bool
}

func newDocument(mux humago.Mux, version string) *document {
	api := humago.New(mux, apiConfig(version))
	return &document{huma: api, schemas: api.OpenAPI().Components.Schemas, examples: map[string]string{}, ids: map[string]bool{}}
}

// operation returns an operation as huma takes it.
func (d *document) operation(op *operation) huma.Operation {
	o := d.describe(op, op.problems(d))
	o.DefaultStatus, o.RejectUnknownQueryParameters = op.successStatus(), op.strictQuery
	if op.body != nil && op.method == http.MethodPost && op.takesKey() {
		o.Parameters = append(o.Parameters, keyParam())
	}
	return o
}

// describe returns what all operations have in common.
func (d *document) describe(op *operation, responses map[string]*huma.Response) huma.Operation {
	d.ids[op.id] = true
	return huma.Operation{
		Method: op.method, Path: op.path, OperationID: op.id, Tags: []string{op.tag},
		Summary: op.summary, Description: op.describe(), Responses: responses, Security: op.access.security(),
	}
}

// keyParam documents Idempotency-Key.
func keyParam() *huma.Param {
	least, most := 1, dibs.MaxKeyLen
	return &huma.Param{
		Name: web.HeaderKey, In: "header", Description: "1-255 visible characters, bare or in quotes, which do not belong to the key; the same key again returns the first result",
		Schema: &huma.Schema{Type: huma.TypeString, MinLength: &least, MaxLength: &most},
	}
}

// idParam documents the id in a path.
func idParam() *huma.Param {
	return &huma.Param{Name: "id", In: "path", Required: true, Description: idDoc, Schema: &huma.Schema{Type: huma.TypeString}}
}

// finish documents what huma does not see: the body, which this package reads
// itself, and the statuses beside the usual one.
func (d *document) finish(op *operation) {
	target := d.operationOf(op)
	usual := target.Responses[strconv.Itoa(op.successStatus())]
	switch {
	case op.status == http.StatusCreated:
		target.Responses["200"] = &huma.Response{
			Description: "Made before: the first result again", Content: usual.Content,
			Headers: map[string]*huma.Param{web.HeaderReplayed: {Schema: &huma.Schema{Type: huma.TypeString}}},
		}
	case op.access == public:
		target.Responses["304"] = &huma.Response{Description: "`If-None-Match` names what is current"}
	case op.id == "readyz":
		target.Responses["503"] = &huma.Response{Description: "Not ready", Content: usual.Content}
	}
	if op.second != nil && op.status != http.StatusAccepted {
		target.Responses["202"] = &huma.Response{
			Description: "It waits for a second person, where the server is set to ask for one",
			Content:     d.asJSON(reflect.TypeFor[pendingView]()),
		}
	}
	if op.body == nil || op.body == reflect.TypeFor[noBody]() {
		return
	}
	media := &huma.MediaType{Schema: d.schemas.Schema(op.body, true, "")}
	if op.example != "" {
		media.Example = json.RawMessage(op.example)
		d.examples[op.id] = op.example
	}
	target.RequestBody = &huma.RequestBody{Required: !op.mayBeEmpty, Content: map[string]*huma.MediaType{web.TypeJSON[0]: media}}
}

// operationOf is an operation as the document has it.
func (d *document) operationOf(op *operation) *huma.Operation {
	item := d.huma.OpenAPI().Paths[op.path]
	return map[string]*huma.Operation{http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPatch: item.Patch, http.MethodDelete: item.Delete}[op.method]
}

// singleParameters names the parameters of an operation's query that the document has as no lists.
func (d *document) singleParameters(op *operation) (names []string) {
	for _, p := range d.operationOf(op).Parameters {
		if p.In == "query" && p.Schema.Type != huma.TypeArray {
			names = append(names, p.Name)
		}
	}
	return names
}

// alsoCSV documents that the list at a path may come as CSV.
func (d *document) alsoCSV(path string) {
	ok := d.huma.OpenAPI().Paths[path].Get.Responses["200"]
	ok.Content[typeCSV] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
}

// problems documents what may come instead of success.
func (op *operation) problems(d *document) map[string]*huma.Response {
	rs := map[string]*huma.Response{"default": d.problem("A refusal or an error; `reason` says which")}
	if op.access != open {
		rs["401"] = d.problem("The token is missing, false or expired")
	}
	if op.access == userOnly || op.access == adminOnly {
		rs["403"] = d.problem("The token is good, but not for this call")
	}
	return rs
}

func (d *document) problem(description string) *huma.Response {
	schema := d.schemas.Schema(reflect.TypeFor[api.Problem](), true, "")
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{web.TypeProblem[0]: {Schema: schema}}}
}

// answers documents a value that an operation answers with.
func (d *document) answers(value reflect.Type) *huma.Response {
	return &huma.Response{Content: d.asJSON(value)}
}

// asJSON is a body of JSON.
func (d *document) asJSON(value reflect.Type) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{web.TypeJSON[0]: {Schema: d.schemas.Schema(value, true, "")}}
}

// security is the access as the document states it.
func (a callers) security() []map[string][]string {
	user, admin := map[string][]string{apidocs.SchemeUser: {}}, map[string][]string{apidocs.SchemeKey: {}}
	return map[callers][]map[string][]string{
		open: {}, public: {{}, admin}, userOnly: {user}, adminOnly: {admin}, either: {user, admin},
	}[a]
}

// describePlain documents a route whose handler is not huma's.
func (d *document) describePlain(op *operation, contentType string) {
	rs := op.problems(d)
	rs[strconv.Itoa(op.successStatus())] = &huma.Response{
		Description: http.StatusText(op.successStatus()),
		Content:     map[string]*huma.MediaType{contentType: {Schema: &huma.Schema{Type: huma.TypeString}}},
	}
	o := d.describe(op, rs)
	// Tools take a slash at the end for a mistake; without it the route redirects.
	o.Path = cmp.Or(strings.TrimSuffix(op.path, "/"), "/")
	if strings.Contains(op.path, "{id}") {
		o.Parameters = []*huma.Param{idParam()}
	}
	d.huma.OpenAPI().AddOperation(&o)
}

// describeUpload documents a route whose body is a CSV file, and whose answer is a T.
func describeUpload[T any](d *document, op *operation) {
	rs := op.problems(d)
	rs["200"] = &huma.Response{Description: "Imported", Content: d.asJSON(reflect.TypeFor[T]())}
	rs["413"] = d.problem("The file is too large")
	if op.method == http.MethodPost {
		// A POST adds to what is there, a PUT replaces it.
		rs["413"] = d.problem("The file is too large: import it in parts")
	}
	rs["415"] = d.problem("The body is not CSV")
	o := d.describe(op, rs)
	o.Parameters = []*huma.Param{idParam()}
	if op.takesKey() {
		o.Parameters = append(o.Parameters, keyParam())
	}
	o.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"text/csv": {
		Schema: &huma.Schema{Type: huma.TypeString}, Example: op.example,
	}}}
	d.huma.OpenAPI().AddOperation(&o)
}

// tree returns the document; served makes of it what is sent. Fields that may be left out of a body
// may also be null, and so may prices and the time to pay, which the Go types cannot
// say.
// The document is made once; an error is a fault of the program and ends its start.
func (d *document) tree() (doc map[string]any, err error) {
	raw, err := json.Marshal(d.huma.OpenAPI())
	if err == nil {
		err = json.Unmarshal(raw, &doc)
	}
	if err != nil {
		return nil, err
	}
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	// huma registers these schemas, and the document names none of them.
	for _, name := range []string{"ErrorModel", "ErrorDetail", "NoBody"} {
		delete(schemas, name)
	}
	for name, s := range schemas {
		schema := s.(map[string]any)
		required, _ := schema["required"].([]any)
		properties, _ := schema["properties"].(map[string]any)
		for field, p := range properties {
			property := p.(map[string]any)
			optional := slices.Contains(inputSchemas, name) && !slices.Contains(required, any(field))
			if optional || property["$ref"] == moneyRef || name == "CampaignView" && field == "pay_within" {
				properties[field] = orNull(property)
			}
		}
	}
	return doc, nil
}

// served is a document as it is served, and its page for people.
func (d *document) served(doc map[string]any) (raw, page []byte, err error) {
	if raw, err = json.MarshalIndent(doc, "", " "); err == nil {
		page, err = apidocs.Render(doc, d.examples)
	}
	return raw, page, err
}

// inputSchemas are the bodies that callers send.
var inputSchemas = []string{"CampaignSpec", "CampaignPatch", "StockSpec", "CodesSpec", "RedPacketSpec", "ProductSpec", "ProductPatch", "StockChange"}

const moneyRef = "#/components/schemas/Money"

// orNull lets a property be null as well.
func orNull(property map[string]any) map[string]any {
	if t, ok := property["type"].(string); ok {
		property["type"] = []any{t, "null"}
		if enum, ok := property["enum"].([]any); ok {
			property["enum"] = append(enum, nil)
		}
		return property
	}
	if ref, ok := property["$ref"]; ok {
		delete(property, "$ref")
		property["anyOf"] = []any{map[string]any{"$ref": ref}, map[string]any{"type": "null"}}
	}
	return property
}

// serveDocument serves the document and its page for people. It must come after all
// other routes.
func (a *routes) serveDocument() error {
	document := operation{method: http.MethodGet, path: "/openapi.json", id: "openapi", tag: tagOps, access: open, summary: "This document"}
	docs := operation{method: http.MethodGet, path: "/docs", id: "docs", tag: tagOps, access: open, summary: "This document for people"}
	a.describePlain(&document, web.TypeJSON[0])
	a.describePlain(&docs, web.TypeHTML[0])
	doc, err := a.tree()
	if err != nil {
		return fmt.Errorf("document: %w", err)
	}
	raw, page, err := a.served(doc)
	if err != nil {
		return fmt.Errorf("document: %w", err)
	}
	// The address for users alone does not say which version of dibs runs.
	doc["info"].(map[string]any)["version"] = apiVersion
	rawOutside, pageOutside, err := a.served(doc)
	if err != nil {
		return fmt.Errorf("document: %w", err)
	}
	a.add("GET /openapi.json", a.static(web.TypeJSON, raw), a.static(web.TypeJSON, rawOutside))
	a.HandleFunc("GET /docs/{$}", func(w http.ResponseWriter, _ *http.Request) { signin.Redirect(w, docs.path) })
	a.add("GET /docs", a.static(web.TypeHTML, page), a.static(web.TypeHTML, pageOutside))
	return nil
}

// apiVersion is that of the API, which all its paths begin with.
const apiVersion = "v1"

// static serves a body that does not change while the process runs.
// The body is made once, so requests share it and nobody may change it.
func (a *routes) static(contentType []string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Content-Type"] = contentType
		h.Set("Content-Security-Policy", apidocs.Policy)
		h.Set("Cache-Control", "public, max-age=60")
		a.respond.Write(w, body)
	}
}
