package web

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/dibs-dev/dibs"
)

// Responder writes answers: it names each request, chooses the language, turns
// errors into problem documents, and logs what went wrong inside. It is safe for
// concurrent use; use NewResponder.
type Responder struct {
	log  *slog.Logger
	ids  requestIDs
	lang *languages
	// ForPeople makes the page of a problem for requests that prefer one to JSON; nil,
	// and a nil page, mean JSON. It is set before the first request.
	ForPeople func(w http.ResponseWriter, r *http.Request, p *Problem) []byte
}

// NewResponder returns a Responder that logs to log.
func NewResponder(log *slog.Logger) (*Responder, error) {
	lang, err := newLanguages()
	if err != nil {
		return nil, err
	}
	a := &Responder{log: log, lang: lang}
	a.ids.init()
	return a, nil
}

// Begin sets the headers that every answer has, and returns the request's id: the
// caller's own when it is fit to be repeated, else a new one.
func (a *Responder) Begin(w http.ResponseWriter, r *http.Request) (id string) {
	id = a.ids.of(r.Header)
	h := w.Header()
	h[HeaderRequestID] = []string{id}
	h["X-Content-Type-Options"] = noSniff
	if r.TLS != nil {
		h["Strict-Transport-Security"] = onlyTLS
	}
	return id
}

// Chinese reports whether a request prefers Chinese to English.
func (a *Responder) Chinese(r *http.Request) bool { return a.lang.chinese(r.Header) }

// Fail answers a request with an error.
func (a *Responder) Fail(w http.ResponseWriter, r *http.Request, id string, err error) {
	p := a.Problem(r, id, err)
	p.SetHeaders(w.Header())
	var page []byte
	if a.ForPeople != nil {
		page = a.ForPeople(w, r, &p)
	}
	w.WriteHeader(p.StatusCode())
	if page == nil {
		page = p.Append(nil, a.Chinese(r), id)
	}
	a.Write(w, page)
}

// Problem returns what a caller sees of an error, and logs the causes of answers
// of status 500 and above. An error that is a Problem already is not logged: the
// code that made it knew what to say.
func (a *Responder) Problem(r *http.Request, id string, err error) Problem {
	p := ProblemOf(err)
	var made Problem
	if errors.As(err, &made) || p.StatusCode() < http.StatusInternalServerError || r.Context().Err() != nil {
		return p
	}
	level := slog.LevelError
	if p.Reason == dibs.Overloaded {
		// Overload is counted, and thousands of lines a second would make it worse.
		level = slog.LevelDebug
	}
	a.log.Log(r.Context(), level, "a request failed", "request_id", id, "route", r.Pattern, "reason", p.Reason.String(), "err", err)
	return p
}

// Write sends a body. A client that is gone is worth a debug line only.
func (a *Responder) Write(w http.ResponseWriter, body []byte) {
	if _, err := w.Write(body); err != nil {
		a.log.Debug("an answer was not delivered", "err", err)
	}
}

// Recovered logs a panic of a handler and answers it. When a part of the answer was
// sent already, it panics with http.ErrAbortHandler instead, so that net/http cuts
// the connection; it passes that on, too.
func (a *Responder) Recovered(w http.ResponseWriter, r *http.Request, id string, fault any, sent bool) {
	if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	if sent {
		a.log.Warn("an answer was cut off", "request_id", id, "route", r.Pattern, "panic", fault)
		panic(http.ErrAbortHandler)
	}
	a.log.Error("panic", "request_id", id, "route", r.Pattern, "panic", fault, "stack", string(debug.Stack()))
	a.Fail(w, r, id, Problem{Reason: dibs.Internal, Detail: logged})
}

// Recorder is a ResponseWriter that notes the status of the answer.
type Recorder struct {
	http.ResponseWriter
	// Status is what was sent, 0 while nothing was. Interim statuses do not count.
	Status int
}

// WriteHeader notes the status and sends it.
func (r *Recorder) WriteHeader(status int) {
	if r.Status == 0 && status >= http.StatusOK {
		r.Status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (r *Recorder) Write(b []byte) (int, error) {
	if r.Status == 0 {
		r.Status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap gives http.ResponseController the writer beneath.
func (r *Recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
