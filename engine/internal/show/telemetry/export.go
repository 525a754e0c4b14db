package telemetry

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// file is an exporter that appends lines of OTLP/JSON to a file, each in the form of a request to a
// collector (https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/).
type file struct {
	mu sync.Mutex
	to *os.File
}

// newFile opens a file for appending. Only its owner may read or write a new file.
func newFile(path string) (*file, error) {
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &file{to: to}, nil
}

// ExportSpans implements sdktrace.SpanExporter.
func (f *file) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w := bufio.NewWriterSize(f.to, 64<<10)
	err := json.NewEncoder(w).Encode(linesOf(spans)) // Encode ends the line
	return errors.Join(err, w.Flush())
}

// Shutdown implements sdktrace.SpanExporter.
func (f *file) Shutdown(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.to.Close()
}

// Listen opens an address of this machine for the metrics of a command: a port, or a host and a
// port. It refuses an address that others can reach, since nothing protects the metrics.
func Listen(address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = ":" + address
	}
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w; name a port, or a host and a port, such as 127.0.0.1:9464", err)
	}
	if at.IP == nil {
		at.IP = net.IPv4(127, 0, 0, 1)
	}
	if !at.IP.IsLoopback() {
		return nil, fmt.Errorf("%s can be reached from other machines, and nothing guards metrics; name 127.0.0.1 and a port", address)
	}
	return net.ListenTCP("tcp", at)
}

// Serve serves the metrics at /metrics until the listener is closed.
func (t *Telemetry) Serve(l net.Listener, log *slog.Logger) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", t.Handler())
	s := &http.Server{
		Handler: mux, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	if err := s.Serve(l); !errors.Is(err, net.ErrClosed) {
		log.Warn("metrics are not served any more", "error", err)
	}
	_ = s.Close()
}

// The schema of OTLP/JSON: ids in hex, 64-bit integers as strings, enumerations as numbers.
type (
	jsonRequest struct {
		ResourceSpans []jsonResourceSpans `json:"resourceSpans"`
	}
	jsonResourceSpans struct {
		Resource   jsonAttributes   `json:"resource"`
		ScopeSpans []jsonScopeSpans `json:"scopeSpans"`
	}
	jsonAttributes struct {
		Attributes []jsonAttribute `json:"attributes,omitempty"`
	}
	jsonScopeSpans struct {
		Scope jsonScope  `json:"scope"`
		Spans []jsonSpan `json:"spans"`
	}
	jsonScope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	jsonSpan struct {
		TraceID                string          `json:"traceId"`
		SpanID                 string          `json:"spanId"`
		TraceState             string          `json:"traceState,omitempty"`
		ParentSpanID           string          `json:"parentSpanId,omitempty"`
		Flags                  uint32          `json:"flags,omitempty"`
		Name                   string          `json:"name"`
		Kind                   int             `json:"kind"`
		StartTimeUnixNano      string          `json:"startTimeUnixNano"`
		EndTimeUnixNano        string          `json:"endTimeUnixNano"`
		Attributes             []jsonAttribute `json:"attributes,omitempty"`
		DroppedAttributesCount int             `json:"droppedAttributesCount,omitempty"`
		Events                 []jsonEvent     `json:"events,omitempty"`
		Links                  []jsonLink      `json:"links,omitempty"`
		DroppedLinksCount      int             `json:"droppedLinksCount,omitempty"`
		Status                 jsonStatus      `json:"status"`
	}
	jsonEvent struct {
		TimeUnixNano string          `json:"timeUnixNano"`
		Name         string          `json:"name"`
		Attributes   []jsonAttribute `json:"attributes,omitempty"`
	}
	jsonLink struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
	}
	jsonStatus struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
	jsonAttribute struct {
		Key   string    `json:"key"`
		Value jsonValue `json:"value"`
	}
	jsonValue struct { // exactly one is set
		String *string    `json:"stringValue,omitempty"`
		Bool   *bool      `json:"boolValue,omitempty"`
		Int    string     `json:"intValue,omitempty"`
		Double *float64   `json:"doubleValue,omitempty"`
		Array  *jsonArray `json:"arrayValue,omitempty"`
	}
	jsonArray struct {
		Values []jsonValue `json:"values"`
	}
)

// linesOf makes a collector's request of spans. All come from one provider, so they share a
// resource and a scope.
func linesOf(spans []sdktrace.ReadOnlySpan) jsonRequest {
	first := spans[0]
	all := make([]jsonSpan, len(spans))
	for i, s := range spans {
		all[i] = spanOf(s)
	}
	scope := jsonScope{Name: first.InstrumentationScope().Name, Version: first.InstrumentationScope().Version}
	return jsonRequest{[]jsonResourceSpans{{
		Resource:   jsonAttributes{attributesOf(first.Resource().Attributes())},
		ScopeSpans: []jsonScopeSpans{{scope, all}},
	}}}
}

func spanOf(s sdktrace.ReadOnlySpan) jsonSpan {
	of := s.SpanContext()
	j := jsonSpan{
		TraceID: of.TraceID().String(), SpanID: of.SpanID().String(), TraceState: of.TraceState().String(), Flags: uint32(of.TraceFlags()),
		Name: s.Name(), Kind: kindOf(s.SpanKind()), StartTimeUnixNano: nano(s.StartTime()), EndTimeUnixNano: nano(s.EndTime()),
		Attributes: attributesOf(s.Attributes()), DroppedAttributesCount: s.DroppedAttributes(), DroppedLinksCount: s.DroppedLinks(),
	}
	if s.Parent().SpanID().IsValid() {
		j.ParentSpanID = s.Parent().SpanID().String()
	}
	for _, e := range s.Events() {
		j.Events = append(j.Events, jsonEvent{nano(e.Time), e.Name, attributesOf(e.Attributes)})
	}
	for _, l := range s.Links() {
		j.Links = append(j.Links, jsonLink{l.SpanContext.TraceID().String(), l.SpanContext.SpanID().String()})
	}
	if j.Status.Message = s.Status().Description; s.Status().Code == codes.Error {
		j.Status.Code = 2
	}
	return j
}

func nano(at time.Time) string { return strconv.FormatInt(at.UnixNano(), 10) }

// kindOf returns the number of a kind in OTLP, which numbers kinds differently.
func kindOf(k trace.SpanKind) int {
	switch k {
	case trace.SpanKindServer:
		return 2
	case trace.SpanKindClient:
		return 3
	}
	return 1
}

func attributesOf(all []attribute.KeyValue) []jsonAttribute {
	out := make([]jsonAttribute, len(all))
	for i, a := range all {
		out[i] = jsonAttribute{string(a.Key), valueOf(a.Value)}
	}
	return out
}

func valueOf(v attribute.Value) (j jsonValue) {
	switch v.Type() {
	case attribute.BOOL:
		is := v.AsBool()
		j.Bool = &is
	case attribute.INT64:
		j.Int = strconv.FormatInt(v.AsInt64(), 10)
	case attribute.FLOAT64:
		number := v.AsFloat64()
		j.Double = &number
	case attribute.STRINGSLICE:
		j.Array = &jsonArray{}
		for _, text := range v.AsStringSlice() {
			j.Array.Values = append(j.Array.Values, jsonValue{String: &text})
		}
	default:
		text := v.String()
		j.String = &text
	}
	return j
}
