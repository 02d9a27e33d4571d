package tracing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// kept takes spans as a collector would.
type kept struct {
	mu    sync.Mutex
	spans []sdk.ReadOnlySpan
}

func (k *kept) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spans = append(k.spans, spans...)
	return nil
}

func (*kept) Shutdown(context.Context) error { return nil }

// traced runs something with a tracer and returns the spans by name.
func traced(t *testing.T, cfg Config, run func(tr *Tracer)) map[string]sdk.ReadOnlySpan {
	t.Helper()
	k := &kept{}
	tr, err := open(t.Context(), cfg, k)
	if err != nil {
		t.Fatal(err)
	}
	run(tr)
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	byName := map[string]sdk.ReadOnlySpan{}
	for _, s := range k.spans {
		byName[s.Name()] = s
	}
	return byName
}

const (
	remoteTrace = "0af7651916cd43dd8448eb211c80319c"
	remoteSpan  = "b7ad6b7169203331"
)

func remote(flags string) http.Header {
	return http.Header{"Traceparent": {"00-" + remoteTrace + "-" + remoteSpan + "-" + flags}}
}

// TestSpans begins spans within spans, and parts of what is kept and is not.
func TestSpans(t *testing.T) {
	spans := traced(t, Config{}, func(tr *Tracer) {
		ctx, end := tr.Begin(t.Context(), "outer", slog.Int("n", 7))
		in, endPart := tr.Part(ctx, "part")
		_, endInner := tr.Begin(in, "inner")
		endInner(errors.New("it broke"))
		endPart(nil)
		end(nil)
		_, alone := tr.Part(t.Context(), "part of nothing")
		alone(nil)
	})
	outer, part, inner := spans["outer"], spans["part"], spans["inner"]
	if len(spans) != 3 || outer == nil || part == nil || inner == nil {
		t.Fatalf("%d spans: %v", len(spans), spans)
	}
	if part.Parent().SpanID() != outer.SpanContext().SpanID() || inner.Parent().SpanID() != part.SpanContext().SpanID() {
		t.Error("the spans are not within one another")
	}
	if inner.Status().Description != "it broke" || outer.Status().Description != "" {
		t.Errorf("ended with %q and %q", inner.Status().Description, outer.Status().Description)
	}
	if a := outer.Attributes(); len(a) != 1 || a[0].Value.AsInt64() != 7 {
		t.Errorf("attributes %v", a)
	}
}

// TestIncomingTrace goes on with the trace of who is trusted, as that has
// decided, and begins one of its own for a stranger.
func TestIncomingTrace(t *testing.T) {
	spans := traced(t, Config{OneIn: 1_000_000_000}, func(tr *Tracer) {
		for _, r := range []struct {
			name, flags string
			trusted     bool
		}{{"kept", "01", true}, {"not kept", "00", true}, {"stranger", "01", false}} {
			_, end := tr.Request(t.Context(), remote(r.flags), r.name, r.trusted)
			end(nil)
		}
	})
	if s := spans["kept"]; len(spans) != 1 || s == nil || s.SpanContext().TraceID().String() != remoteTrace || s.Parent().SpanID().String() != remoteSpan {
		t.Errorf("of a caller who is trusted: %v", spans)
	}
	spans = traced(t, Config{}, func(tr *Tracer) {
		_, end := tr.Request(t.Context(), remote("01"), "stranger", false)
		end(nil)
		_, end = tr.Request(t.Context(), http.Header{"Traceparent": {"00-zz"}}, "broken", true)
		end(nil)
	})
	if s := spans["stranger"]; s == nil || s.Parent().IsValid() || len(s.Links()) != 1 || s.Links()[0].SpanContext.TraceID().String() != remoteTrace {
		t.Errorf("of a stranger: %v", s)
	}
	if s := spans["broken"]; s == nil || s.Parent().IsValid() {
		t.Errorf("of a header that says nothing: %v", s)
	}
}

// TestLogLines writes lines within and without a trace.
func TestLogLines(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(LogHandler(slog.NewTextHandler(&out, nil))).With("node", 1)
	traced(t, Config{}, func(tr *Tracer) {
		ctx, end := tr.Request(t.Context(), remote("01"), "r", true)
		log.InfoContext(ctx, "within")
		end(nil)
	})
	within := out.String()
	out.Reset()
	log.InfoContext(t.Context(), "without")
	if !strings.Contains(within, "trace_id="+remoteTrace+" span_id=") || strings.Contains(out.String(), "trace_id") {
		t.Errorf("lines %q and %q", within, out.String())
	}
}

// TestSettings checks addresses, and when there is something to do.
func TestSettings(t *testing.T) {
	for _, address := range []string{"collector:4318", "ftp://collector", "http://", "http://user:secret@collector:4318", ":"} {
		if CheckEndpoint(address) == nil {
			t.Errorf("%q is no address", address)
		}
		if _, err := Open(t.Context(), Config{Endpoint: address}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", address, err)
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
	if Wanted("") || !Wanted("http://collector:4318") {
		t.Error("wanted by nobody, or not by the setting")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
	if !Wanted("") {
		t.Error("not wanted by the environment")
	}
	t.Setenv("OTEL_SDK_DISABLED", "true")
	if Wanted("http://collector:4318") {
		t.Error("wanted although disabled")
	}
}
