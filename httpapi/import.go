package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibs-dev/dibs"
)

const (
	importPattern = "POST /v1/campaigns/{id}/codes"
	// importRead and importWrite bound how long a file may be on its way, and how
	// long the ledger may take between two reports of progress.
	importRead  = 10 * time.Minute
	importWrite = 5 * time.Minute
	// headerImported tells, in interim answers of status 102, how many codes have
	// been written; who wants them sends Prefer: progress.
	headerImported = "Dibs-Imported"
	csvExample     = "code\nSPRING-0001\nSPRING-0002\n"
)

var errNotCSV = problem{
	reason: dibs.InvalidRequest, status: http.StatusUnsupportedMediaType,
	detail: dibs.Text{EN: "send the file as Content-Type: text/csv", ZH: "请以 Content-Type: text/csv 发送文件"},
}

// registerImport adds the upload of codes. Its body is a file and no JSON: it
// goes to a temporary one first, so that no transaction waits for a slow sender.
func (a *api) registerImport() {
	op := operation{
		method: http.MethodPost, path: "/v1/campaigns/{id}/codes", id: "import-codes", tag: tagAdmin, access: adminOnly, role: dibs.RolePublisher,
		summary: "Import codes from a CSV file",
		description: "One code on each line, quoted or not; a first line `code` is left out. All of them are added to a campaign of items, or none: " +
			"`errors` names the first lines that cannot be read or that come twice. With `Prefer: progress`, interim answers (102) say in `" +
			headerImported + "` how far it is.",
	}
	rs := op.problems(a)
	rs["200"] = &huma.Response{Description: "Imported", Content: map[string]*huma.MediaType{
		"application/json": {Schema: a.schemas.Schema(reflect.TypeFor[dibs.ImportView](), true, "")},
	}}
	rs["413"] = a.problemResponse("The file is too large: import it in parts")
	rs["415"] = a.problemResponse("The body is no CSV")
	a.huma.OpenAPI().AddOperation(&huma.Operation{
		Method: op.method, Path: op.path, OperationID: op.id, Tags: []string{op.tag},
		Summary: op.summary, Description: op.describe(), Responses: rs, Security: op.access.security(),
		Parameters: []*huma.Param{
			{Name: "id", In: "path", Required: true, Description: idDoc, Schema: &huma.Schema{Type: huma.TypeString}}, keyParam(),
		},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"text/csv": {
			Schema: &huma.Schema{Type: huma.TypeString}, Example: csvExample,
		}}},
	})
	a.routes.inner(importPattern, func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		body, err := a.importCodes(c, &op)
		if err != nil {
			a.fail(c, err)
			return
		}
		h := w.Header()
		h["Content-Type"] = typeJSON
		a.write(w, body)
	})
}

// importCodes reads the file and imports it.
func (a *api) importCodes(c *call, op *operation) (body []byte, err error) {
	r := c.request
	if c.who, err = a.admitRole(r.Context(), r.Header, adminOnly, op.needs()); err != nil {
		return nil, err
	}
	defer a.trace(c, op)()
	r = c.request
	c.Header()["Cache-Control"] = noStore
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "text/csv" {
		return nil, errNotCSV
	}
	ref, err := onceRef(c)
	if err != nil {
		return nil, err
	}
	file, sum, err := a.keepFile(c, a.cfg.MaxAdminBody)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	status := http.StatusOK
	err = a.once(r.Context(), c, sum, func(raw []byte) { body = raw }, &status, func() (any, error) {
		return audited(r.Context(), a, c, op, func() (dibs.ImportView, error) {
			done, err := a.svc.ImportCodes(r.Context(), r.PathValue("id"), file, ref, a.progress(c))
			if err != nil {
				return dibs.ImportView{}, err
			}
			return done.View(), nil
		})
	})
	return body, err
}

// keepFile writes the body to a temporary file without a name, and returns it
// with the hash of its bytes.
func (a *api) keepFile(c *call, most int64) (file *os.File, sum string, err error) {
	if err := http.NewResponseController(c).SetReadDeadline(time.Now().Add(importRead)); err != nil {
		return nil, "", err
	}
	kept, err := os.CreateTemp("", "dibs-import-")
	if err != nil {
		return nil, "", dibs.Unavail(dibs.EffectNone, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, kept.Close())
		}
	}()
	if err := os.Remove(kept.Name()); err != nil {
		return nil, "", err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(kept, hash), http.MaxBytesReader(c, c.request.Body, most))
	var over *http.MaxBytesError
	var disk *os.PathError
	switch {
	case errors.As(err, &over):
		return nil, "", tooLarge(most)
	case errors.As(err, &disk):
		return nil, "", dibs.Unavail(dibs.EffectNone, err)
	case err != nil:
		return nil, "", errCutOff
	}
	return kept, hex.EncodeToString(hash.Sum(nil)), nil
}

// progress returns what is told how many codes have been written. It keeps the
// connection alive, and tells the client when that wants to know.
func (a *api) progress(c *call) func(int64) {
	asked := false
	for _, v := range c.request.Header["Prefer"] {
		asked = asked || strings.Contains(v, "progress")
	}
	rc := http.NewResponseController(c)
	extend := func() {
		if err := rc.SetWriteDeadline(time.Now().Add(importWrite)); err != nil {
			a.log.WarnContext(c.request.Context(), "an import's deadline was not moved", "request_id", c.id, "err", err)
		}
	}
	extend()
	return func(written int64) {
		extend()
		if !asked {
			return
		}
		h := c.Header()
		h.Set(headerImported, strconv.FormatInt(written, 10))
		// Beneath the call, which takes the first status for the last.
		c.ResponseWriter.WriteHeader(http.StatusProcessing)
		h.Del(headerImported)
	}
}
