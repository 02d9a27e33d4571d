package httpapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibs-dev/dibs"
)

// The names under which the document knows the two kinds of token.
const (
	schemeUser  = "userToken"
	schemeAdmin = "apiKey"
)

// about is the text that heads the document.
const about = `dibs decides who gets things that run out: flash sales and coupons.

Times are RFC 3339 in UTC, durations look like ` + "`15m`" + `, money is an object with integer minor units. Unknown fields are refused.
Lists take ` + "`limit`" + ` and ` + "`cursor`" + ` and answer ` + "`items`" + ` and ` + "`next_cursor`" + `, which is empty at the end.
Every refusal and error is an ` + "`application/problem+json`" + ` document, in Chinese when ` + "`Accept-Language`" + ` prefers it.
A POST with an ` + "`Idempotency-Key`" + ` can be repeated: the repeat returns the first result with status 200 and ` + "`Idempotent-Replayed: true`" + `.`

// The tags group the routes for readers.
const (
	tagUser     = "Claims"
	tagCatalog  = "Campaigns"
	tagAdmin    = "Admin: campaigns"
	tagProducts = "Admin: products"
	tagOps      = "Operations"
)

// apiConfig is the document's head and huma's settings.
func apiConfig(version string) huma.Config {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	registry.RegisterTypeAlias(reflect.TypeFor[dibs.Duration](), reflect.TypeFor[durationText]())
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info:    &huma.Info{Title: "dibs", Version: version, Description: about},
			Tags: []*huma.Tag{
				{Name: tagCatalog, Description: "What is on offer."},
				{Name: tagUser, Description: "Get one, and see what you got."},
				{Name: tagGateway, Description: "Long-lived connections: taps and results, and what happens to campaigns."},
				{Name: tagQueue, Description: "Wait for your turn, register for a draw, fetch a ticket."},
				{Name: tagMoney, Description: "Accounts: what comes in from outside, and what red packets move."},
				{Name: tagLife, Description: "Payment, refund, use and shipping."},
				{Name: tagAdmin, Description: "Draft, publish and watch campaigns."},
				{Name: tagProducts, Description: "What campaigns sell or give."},
				{Name: tagEvents, Description: "What happens, as events; and the webhooks that are told."},
				{Name: tagAccess, Description: "Who did what, and who may."},
				{Name: tagUsers, Description: "What there is about a user, and erasing it."},
				{Name: tagOps, Description: "Is it alive, is it ready, how fast is it."},
			},
			Components: &huma.Components{
				Schemas: registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					schemeUser:  {Type: "http", Scheme: "bearer", BearerFormat: "JWT", Description: "A user's token; `sub` is the user."},
					schemeAdmin: {Type: "http", Scheme: "bearer", Description: "An API key, as `dibs key create` prints it."},
				},
			},
		},
		Formats:       map[string]huma.Format{typeJSON[0]: format, typeProblem[0]: format, typeCSV: format},
		DefaultFormat: "application/json",
	}
}

// durationText is how a duration looks in JSON.
type durationText string

// Schema says what a duration looks like.
func (durationText) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{
		Type: huma.TypeString, Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`,
		PatternDescription: "a duration such as 15m", Examples: []any{"15m"},
	}
	s.PrecomputeMessages()
	return s
}

func (op *operation) successStatus() int {
	if op.status == 0 {
		return http.StatusOK
	}
	return op.status
}

// document is the operation as huma takes it.
func (op *operation) document(a *api) huma.Operation {
	d := huma.Operation{
		Method: op.method, Path: op.path, OperationID: op.id, Tags: []string{op.tag},
		Summary: op.summary, Description: op.describe(), DefaultStatus: op.successStatus(),
		Responses: op.problems(a), Security: op.access.security(),
		RejectUnknownQueryParameters: op.strictQuery,
		Middlewares: huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
			c := callOf(ctx.Context())
			if c.outside && op.access == adminOnly {
				a.fail(c, noRoute)
				return
			}
			who, err := a.admitRole(ctx.Context(), c.request.Header, op.access, op.needs())
			if err != nil {
				a.fail(c, err)
				return
			}
			c.who = who
			if op.access >= userOnly {
				c.Header()["Cache-Control"] = noStore
			}
			if a.cfg.Tracer != nil {
				defer a.trace(c, op)()
				ctx = huma.WithContext(ctx, c.request.Context())
			}
			next(ctx)
		}},
	}
	if op.body != nil && op.method == http.MethodPost {
		d.Parameters = append(d.Parameters, keyParam())
	}
	return d
}

// keyParam documents Idempotency-Key.
func keyParam() *huma.Param {
	least, most := 1, dibs.MaxKeyLen
	return &huma.Param{
		Name: headerKey, In: "header", Description: "1-255 visible characters; the same key again returns the first result",
		Schema: &huma.Schema{Type: huma.TypeString, MinLength: &least, MaxLength: &most},
	}
}

// finish documents what huma does not see: the body, which dibs reads by
// itself, and the statuses beside the usual one.
func (op *operation) finish(a *api) {
	item := a.huma.OpenAPI().Paths[op.path]
	target := map[string]*huma.Operation{http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPatch: item.Patch, http.MethodDelete: item.Delete}[op.method]
	usual := target.Responses[strconv.Itoa(op.successStatus())]
	switch {
	case op.status == http.StatusCreated:
		target.Responses["200"] = &huma.Response{
			Description: "Made before: the first result again", Content: usual.Content,
			Headers: map[string]*huma.Param{headerReplayed: {Schema: &huma.Schema{Type: huma.TypeString}}},
		}
	case op.access == public:
		target.Responses["304"] = &huma.Response{Description: "`If-None-Match` names what is current"}
	case op.id == "readyz":
		target.Responses["503"] = &huma.Response{Description: "Not ready", Content: usual.Content}
	}
	if op.body == nil || op.body == reflect.TypeFor[noBody]() {
		return
	}
	media := &huma.MediaType{Schema: a.schemas.Schema(op.body, true, "")}
	if op.example != "" {
		media.Example = json.RawMessage(op.example)
		a.examples[op.id] = op.example
	}
	target.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": media}}
}

// problems documents what may come instead of success.
func (op *operation) problems(a *api) map[string]*huma.Response {
	rs := map[string]*huma.Response{"default": a.problemResponse("A refusal or an error; `reason` says which")}
	if op.access != open {
		rs["401"] = a.problemResponse("The token is missing, false or expired")
	}
	if op.access == userOnly || op.access == adminOnly {
		rs["403"] = a.problemResponse("The token is good, but not for this call")
	}
	return rs
}

func (a *api) problemResponse(description string) *huma.Response {
	schema := a.schemas.Schema(reflect.TypeFor[dibs.Problem](), true, "")
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{typeProblem[0]: {Schema: schema}}}
}

// security is the access as the document states it.
func (a access) security() []map[string][]string {
	user, admin := map[string][]string{schemeUser: {}}, map[string][]string{schemeAdmin: {}}
	switch a {
	case public:
		return []map[string][]string{{}, admin}
	case userOnly:
		return []map[string][]string{user}
	case adminOnly:
		return []map[string][]string{admin}
	case either:
		return []map[string][]string{user, admin}
	default:
		return []map[string][]string{}
	}
}

// plain documents a route whose handler is not huma's.
func (a *api) plain(op operation, contentType string, more map[string]*huma.Response) {
	rs := op.problems(a)
	rs[strconv.Itoa(op.successStatus())] = &huma.Response{
		Description: http.StatusText(op.successStatus()),
		Content:     map[string]*huma.MediaType{contentType: {Schema: &huma.Schema{Type: huma.TypeString}}},
	}
	for status, r := range more {
		rs[status] = r
	}
	a.huma.OpenAPI().AddOperation(&huma.Operation{
		Method: op.method, Path: op.path, OperationID: op.id, Tags: []string{op.tag},
		Summary: op.summary, Description: op.description, Responses: rs, Security: op.access.security(),
	})
}

// documentClaim documents the claim route, which has a handler of its own.
func (a *api) documentClaim(op operation) {
	claim := func(description string, headers map[string]*huma.Param) *huma.Response {
		return &huma.Response{Description: description, Headers: headers, Content: map[string]*huma.MediaType{
			"application/json": {Schema: a.schemas.Schema(reflect.TypeFor[dibs.ClaimView](), true, "")},
		}}
	}
	text := &huma.Schema{Type: huma.TypeString}
	longestDevice := dibs.MaxDeviceLen
	a.examples[op.id] = op.example
	rs := op.problems(a)
	rs["201"] = claim("Granted, for good", map[string]*huma.Param{"Location": {Schema: text}})
	rs["200"] = claim("Granted before: the first result again", map[string]*huma.Param{headerReplayed: {Schema: text}})
	rs["400"] = a.problemResponse("The request is not valid; `errors` lists what is wrong")
	rs["404"] = a.problemResponse("There is no such campaign")
	rs["409"] = a.problemResponse("Refused: paused, not_started, ended, sold_out, limit_reached, too_many_claims or waiting")
	rs["413"] = a.problemResponse("The body is too large")
	rs["422"] = a.problemResponse("The key was used for another quantity")
	rs["503"] = a.problemResponse("Not answered; `effect` says whether it may have been granted all the same")
	a.huma.OpenAPI().AddOperation(&huma.Operation{
		Method: op.method, Path: op.path, OperationID: op.id, Tags: []string{op.tag},
		Summary: op.summary, Description: op.description, Responses: rs, Security: op.access.security(),
		Parameters: []*huma.Param{
			{Name: "id", In: "path", Required: true, Description: idDoc, Schema: text},
			keyParam(),
			{
				Name: headerDevice, In: "header", Description: "what the client calls itself, for limits per device; 255 bytes at most",
				Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &longestDevice},
			},
			{Name: headerTicket, In: "header", Description: "the ticket, where the campaign asks for one", Schema: text},
			{Name: headerAdmission, In: "header", Description: "the admission of who may claim, where there is a waiting room", Schema: text},
		},
		RequestBody: &huma.RequestBody{Content: map[string]*huma.MediaType{"application/json": {
			Schema: a.schemas.Schema(reflect.TypeFor[claimBody](), true, ""), Example: json.RawMessage(op.example),
		}}},
	})
}

// documentJSON is the document as it is served. Fields that may be left out
// of a body may also be null, and so may prices and the time to pay: the Go types
// cannot say so.
func (a *api) documentJSON() (doc map[string]any, raw []byte, err error) {
	if raw, err = json.Marshal(a.huma.OpenAPI()); err != nil {
		return nil, nil, err
	}
	if err = json.Unmarshal(raw, &doc); err != nil {
		return nil, nil, err
	}
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	// Shapes that were registered on the way and that the document never names.
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
	raw, err = json.MarshalIndent(doc, "", " ")
	return doc, raw, err
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
