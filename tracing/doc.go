// Package tracing shows where time goes, by OpenTelemetry: it sends spans by
// OTLP over HTTP to a collector, and writes the id of the trace into log lines.
//
// # Basics
//
// Open one Tracer for a process, give it to node.Config, sqlledger.Options and
// httpapi.Config, and Close it last. The variables of OpenTelemetry count
// (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME,
// OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_SDK_DISABLED and the rest).
//
// # Caveats
//
// A collector that does not answer costs spans and nothing else: they wait in a
// queue with an end, and what does not fit is dropped.
package tracing
