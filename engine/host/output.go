package host

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"

	"github.com/racflow/racflow/engine/redact"
)

const (
	maxLine   = 8 << 10 // bytes of a line in the log
	maxTail   = 300     // bytes of a line in an error message
	tailLines = 12      // lines in an error message
)

// output takes what a plugin writes: it masks secrets, remembers the last
// lines and hands each line to the log.
type output struct {
	log     *slog.Logger
	secrets *redact.Secrets
	mu      sync.Mutex
	last    []string
	trace   trace
}

// lines returns a writer that cuts a stream into lines for o.
func (o *output) lines(stream string) *lineWriter {
	return &lineWriter{limit: func() int { return maxLine + o.secrets.Longest() }, emit: func(line string, cut bool) { o.line(stream, line, cut) }}
}

func (o *output) line(stream, line string, cut bool) {
	line = strings.ToValidUTF8(o.secrets.Message(line), "\uFFFD")
	if cut {
		// The end may hold the beginning of a secret.
		line = strings.ToValidUTF8(line[:max(min(len(line)-o.secrets.Longest(), maxLine), 0)], "") + "..."
	}
	if strings.TrimSpace(line) == "" {
		return
	}
	short := line
	if len(short) > maxTail {
		short = strings.ToValidUTF8(short[:maxTail], "") + "..."
	}
	o.mu.Lock()
	if stream == "stderr" {
		o.trace.add(short)
	}
	o.last = append(o.last, short)
	if len(o.last) > tailLines {
		o.last = o.last[1:]
	}
	o.mu.Unlock()
	o.forward(stream, line)
}

// forward logs a line: one that slog wrote as what it is, any other as text.
func (o *output) forward(stream, line string) {
	var record map[string]any
	if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &record) == nil {
		message, isText := record["msg"].(string)
		name, hasLevel := record["level"].(string)
		var level slog.Level
		if isText && hasLevel && level.UnmarshalText([]byte(name)) == nil {
			var attrs []slog.Attr
			for key, value := range record {
				if key != "msg" && key != "level" && key != "time" && key != "stage" {
					attrs = append(attrs, slog.Any(o.secrets.Message(key), o.masked(value)))
				}
			}
			o.log.LogAttrs(context.Background(), level, o.secrets.Message(message), attrs...)
			return
		}
	}
	o.log.Info(line, "stream", stream)
}

// masked masks a value once more, now that it is no longer quoted.
func (o *output) masked(value any) any {
	switch v := value.(type) {
	case string:
		return o.secrets.Message(v)
	case []any:
		for i := range v {
			v[i] = o.masked(v[i])
		}
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, value := range v {
			all[o.secrets.Message(key)] = o.masked(value)
		}
		return all
	}
	return value
}

// tail is the last lines, or the stack of a panic, for the end of an error message.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	words := o.last
	if len(o.trace.stack) > 1 {
		words = o.trace.stack
	}
	if len(words) == 0 {
		return "; it wrote nothing"
	}
	return "; its last words:\n  " + strings.Join(words, "\n  ")
}

// panicked is what a Go program that panics says of it; empty: it wrote of none.
func (o *output) panicked() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.trace.what()
}

// forget makes ready for another process.
func (o *output) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last, o.trace = nil, trace{}
}

// lineWriter cuts what is written into lines and drops what is over the limit,
// so that a line of any length costs bounded memory and blocks nobody.
type lineWriter struct {
	limit func() int // bytes; secrets that come to be known raise it
	emit  func(line string, cut bool)
	mu    sync.Mutex
	line  []byte
	cut   bool
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		part, rest, whole := bytes.Cut(p, []byte("\n"))
		if room := w.limit() - len(w.line); len(part) > room {
			part, w.cut = part[:room], true
		}
		w.line = append(w.line, part...)
		if whole {
			w.flush()
		}
		p = rest
	}
	return n, nil
}

// Close emits a last line that has no end.
func (w *lineWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.line) > 0 {
		w.flush()
	}
	return nil
}

func (w *lineWriter) flush() {
	w.emit(string(w.line), w.cut)
	w.line, w.cut = w.line[:0], false
}
