package telemetry

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// file is an exporter that adds lines of OTLP/JSON to a file, each a request as a collector
// takes it (https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/).
type file struct {
	mu sync.Mutex
	to *os.File
}

// newFile opens a file, which is for its owner alone where it is new.
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
	err := json.NewEncoder(w).Encode(linesOf(spans)) // which ends the line
	return errors.Join(err, w.Flush())
}

// Shutdown implements sdktrace.SpanExporter.
func (f *file) Shutdown(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.to.Close()
}
