package telemetry

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// file is a client of the OTLP exporter that appends lines of OTLP/JSON to a file, each in the form of a request
// to a collector (https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/).
type file struct {
	mu sync.Mutex
	to *os.File
}

var _ otlptrace.Client = (*file)(nil)

// newFile opens a file for appending. Only its owner may read or write a new file.
func newFile(path string) (*file, error) {
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &file{to: to}, nil
}

// Start implements otlptrace.Client.
func (f *file) Start(context.Context) error { return nil }

// UploadTraces implements otlptrace.Client.
func (f *file) UploadTraces(_ context.Context, spans []*tracepb.ResourceSpans) error {
	text, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(&collectorpb.ExportTraceServiceRequest{ResourceSpans: spans})
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return err
	}
	line.WriteByte('\n')
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err = f.to.Write(ids.ReplaceAllFunc(line.Bytes(), inHex))
	return err
}

// ids finds the ids of traces and spans. It cannot match a value of an attribute, because quotes in values are
// escaped.
var ids = regexp.MustCompile(`"(traceId|spanId|parentSpanId)":"([^"]*)"`)

// inHex writes an id in hexadecimal, as OTLP/JSON requires; the JSON form of protocol buffers has
// base64.
func inHex(id []byte) []byte {
	parts := ids.FindSubmatch(id)
	raw, err := base64.StdEncoding.AppendDecode(nil, parts[2])
	if err != nil {
		return id
	}
	return fmt.Appendf(nil, `"%s":"%s"`, parts[1], hex.EncodeToString(raw))
}

// Stop implements otlptrace.Client.
func (f *file) Stop(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.to.Close()
}

// Listen opens an address of this machine for the metrics of a command: a port, or a host and a
// port. It refuses an address that other machines can reach, because nothing protects the metrics.
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
