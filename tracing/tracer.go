package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/dibs-dev/dibs"
)

// Config configures a Tracer; the zero value of any field means the default
// named beside it.
type Config struct {
	// Endpoint is the collector, http://collector:4318 say; without a path spans go
	// to /v1/traces. Default: what OpenTelemetry's variables name.
	Endpoint string
	// OneIn is of how many traces one is kept; default 1, all. Calls that come with
	// a trace of their own are kept as their caller has decided. OTEL_TRACES_SAMPLER
	// wins.
	OneIn int
	// Version is that of the program.
	Version string
	// Logger is told of spans that could not be sent, once a minute; default: nobody.
	Logger *slog.Logger
}

// CheckEndpoint says why an address cannot be Config.Endpoint; nil when it can.
func CheckEndpoint(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return errors.New("must be an address such as http://collector:4318")
	case u.User != nil:
		return errors.New("must have no user and password in it: OTEL_EXPORTER_OTLP_HEADERS has credentials")
	}
	return nil
}

// Wanted reports whether there is a collector to send spans to, by the endpoint
// that was configured or by OpenTelemetry's variables.
func Wanted(endpoint string) bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return endpoint != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// IsPlain reports whether spans, and the credentials of the collector, go to another machine without TLS, by the
// endpoint that was configured or by OpenTelemetry's variables. here tells which hosts, with or without a port, are
// this machine.
func IsPlain(endpoint string, here func(host string) bool) bool {
	if !Wanted(endpoint) {
		return false
	}
	address, insecure := endpoint, false
	if address == "" {
		address = cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
		// The exporter obeys these for an address of https:// too, but not for that of a setting.
		insecure = strings.EqualFold(os.Getenv("OTEL_EXPORTER_OTLP_INSECURE"), "true") || strings.EqualFold(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_INSECURE"), "true")
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		// It is no address: the exporter sends to this machine.
		return false
	}
	return !here(u.Host) && (insecure || u.Scheme != "https")
}

// Tracer is a dibs.Tracer, and for httpapi. Use Open.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	incoming propagation.TraceContext
}

var _ dibs.Tracer = (*Tracer)(nil)

// Open returns a tracer. It does not wait for the collector. Close it.
func Open(ctx context.Context, cfg Config) (*Tracer, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	var opts []otlptracehttp.Option
	if cfg.Endpoint != "" {
		if err := CheckEndpoint(cfg.Endpoint); err != nil {
			return nil, fmt.Errorf("tracing: Config.Endpoint %w", err)
		}
		u, err := url.Parse(cfg.Endpoint)
		if err != nil {
			return nil, fmt.Errorf("tracing: Config.Endpoint: %w", err)
		}
		if strings.Trim(u.Path, "/") == "" {
			u.Path = "/v1/traces"
		}
		opts = append(opts, otlptracehttp.WithEndpointURL(u.String()))
	}
	exporter, err := otlptracehttp.New(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	otel.SetErrorHandler(&complaints{log: cfg.Logger})
	return open(ctx, cfg, exporter)
}

// open makes a tracer of an exporter.
func open(ctx context.Context, cfg Config, exporter sdk.SpanExporter) (*Tracer, error) {
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", "dibs"), attribute.String("service.version", cfg.Version)),
		resource.WithFromEnv())
	if err != nil && about == nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	opts := []sdk.TracerProviderOption{sdk.WithBatcher(exporter), sdk.WithResource(about)}
	if os.Getenv("OTEL_TRACES_SAMPLER") == "" {
		opts = append(opts, sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(1/float64(max(cfg.OneIn, 1))))))
	}
	p := sdk.NewTracerProvider(opts...)
	return &Tracer{provider: p, tracer: p.Tracer("github.com/dibs-dev/dibs")}, nil
}

// Close sends what waits, until ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("tracing: the last spans were not sent: %w", err)
	}
	return nil
}

// Begin implements dibs.Tracer.
func (t *Tracer) Begin(ctx context.Context, name string, about ...slog.Attr) (context.Context, func(error)) {
	return t.start(ctx, name, about)
}

// Part implements dibs.Tracer.
func (t *Tracer) Part(ctx context.Context, name string, about ...slog.Attr) (context.Context, func(error)) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, nothing
	}
	return t.start(ctx, name, about)
}

// Request begins the span of a request. The trace that its headers name goes on
// in it when who sent it is trusted; else it is a trace of its own, with a link
// to that one, so that strangers cannot have their requests kept.
func (t *Tracer) Request(ctx context.Context, h http.Header, name string, trusted bool, about ...slog.Attr) (context.Context, func(error)) {
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
	named := t.incoming.Extract(context.Background(), propagation.HeaderCarrier(h))
	if remote := trace.SpanContextFromContext(named); remote.IsValid() {
		if trusted {
			ctx = trace.ContextWithRemoteSpanContext(ctx, remote)
		} else {
			opts = append(opts, trace.WithLinks(trace.Link{SpanContext: remote}))
		}
	}
	return t.start(ctx, name, about, opts...)
}

func nothing(error) {}

func (t *Tracer) start(ctx context.Context, name string, about []slog.Attr, opts ...trace.SpanStartOption) (context.Context, func(error)) {
	attrs := make([]attribute.KeyValue, len(about))
	for i, a := range about {
		attrs[i] = attributeOf(a)
	}
	ctx, span := t.tracer.Start(ctx, name, append(opts, trace.WithAttributes(attrs...))...)
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

func attributeOf(a slog.Attr) attribute.KeyValue {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindInt64:
		return attribute.Int64(a.Key, v.Int64())
	case slog.KindBool:
		return attribute.Bool(a.Key, v.Bool())
	case slog.KindFloat64:
		return attribute.Float64(a.Key, v.Float64())
	default:
		return attribute.String(a.Key, v.String())
	}
}

// complainEvery is how often it is told that spans cannot be sent.
const complainEvery = time.Minute

// complaints logs what goes wrong in OpenTelemetry. mu guards last, when it did so.
type complaints struct {
	log  *slog.Logger
	mu   sync.Mutex
	last time.Time
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.last) < complainEvery {
		return
	}
	c.last = time.Now()
	c.log.Warn("traces are not sent; nothing else suffers from it", "err", err)
}
