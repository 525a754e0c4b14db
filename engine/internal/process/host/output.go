package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/racflow/racflow/engine/internal/process/redact"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

const (
	maxLine   = 8 << 10 // maximum bytes of a line in the log
	maxTail   = 300     // maximum bytes of a line in an error message
	tailLines = 12      // maximum lines in an error message
)

// output receives what a plugin writes: it masks secrets, keeps the last lines for errors and sends
// each line to the log.
type output struct {
	log     *slog.Logger
	secrets *redact.Secrets
	mu      sync.Mutex
	last    []string
	trace   trace
}

// lines returns a writer that splits a stream into lines for o.
func (o *output) lines(stream string) *lineWriter {
	return &lineWriter{limit: func() int { return maxLine + o.secrets.Longest() }, emit: func(line string, cut bool) { o.line(stream, line, cut) }}
}

func (o *output) line(stream, line string, cut bool) {
	line = strings.ToValidUTF8(o.secrets.Shown(line), "\uFFFD")
	if cut {
		// The cut end may hold the first part of a secret.
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

// forward logs a line: as a record if slog wrote it, otherwise as text.
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
					attrs = append(attrs, slog.Any(o.secrets.Shown(key), replaced(value, o.secrets.Shown)))
				}
			}
			o.log.LogAttrs(context.Background(), level, o.secrets.Shown(message), attrs...)
			return
		}
	}
	o.log.Info(line, "stream", stream)
}

// tail returns the last lines, or the stack of a panic, for the end of an error message.
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

// panicked returns the first line and place of a Go program's panic; empty: there was none.
func (o *output) panicked() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.trace.what()
}

// forget clears the recorded output for the next process.
func (o *output) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last, o.trace = nil, trace{}
}

// lineWriter splits its input into lines and drops bytes over the limit, so that a line of any
// length costs bounded memory and blocks nobody.
type lineWriter struct {
	limit func() int // in bytes; grows with the longest known secret
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

// Close emits the last line if it has no newline.
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

// hide replaces the secrets of all stages in a reply: every secret in failures, and only long
// enough ones in results.
func (p *Process) hide(reply proto.Message) {
	for _, f := range failures(reply) {
		f.Message = p.out.secrets.Shown(f.GetMessage())
	}
	if r, ok := reply.(*stagepb.RowsReply); ok && r.GetPending() != nil {
		r.Pending.Note = p.out.secrets.Shown(r.Pending.GetNote()) // people read it, as they read a failure
		if handle := r.Pending.GetHandle(); p.out.secrets.Result(handle) != handle {
			r.Pending = nil // its handle would be written to disk
			r.Failure = wire.EncodeFailure(sdk.Invalid(errors.New("a secret stands in the handle of results that come later; the plugin has to name its work in another way")))
		}
	}
	if r, ok := reply.(*stagepb.AttachReply); ok { // people read all of it
		redactMessage(r, p.out.secrets.Message)
	}
	if p.out.secrets.InResults() && redactMessage(reply, p.out.secrets.Result) {
		p.masked.Do(func() {
			p.out.log.Warn("a secret stood in the stage's results, which hold " + redact.Placeholder + " in its place")
		})
	}
}

// failing is implemented by every reply to work.
type failing interface{ GetFailure() *stagepb.Failure }

// failures returns the failures in a reply: of the whole reply and of single rows.
func failures(reply proto.Message) []*stagepb.Failure {
	all := []*stagepb.Failure{reply.(failing).GetFailure()}
	if rows, ok := reply.(interface{ GetErrors() []*stagepb.RowError }); ok {
		for _, e := range rows.GetErrors() {
			all = append(all, e.GetFailure())
		}
	}
	return slices.DeleteFunc(all, func(f *stagepb.Failure) bool { return f == nil })
}

// exact names fields that are not text, and fields that the engine sends back unchanged.
var exact = map[protoreflect.FullName]bool{
	"racflow.stage.v2.Rows.vectors":     true,
	"racflow.stage.v2.Rows.hash":        true,
	"racflow.stage.v2.Pending.handle":   true,
	"racflow.stage.v2.ScanReply.cursor": true,
	"racflow.stage.v2.Collection.name":  true,
	"racflow.stage.v2.Attached.name":    true,
}

// idsOf names a field that concatenates many texts.
const idsOf = "racflow.stage.v2.Candidates.ids"

// redactMessage replaces each text in a message and in its nested messages, and reports whether any
// text changed.
func redactMessage(m proto.Message, replace func(string) string) (changed bool) {
	if c, ok := m.(*stagepb.Candidates); ok && c != nil {
		changed = redactIDs(c, replace)
	}
	message := m.ProtoReflect()
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch kind := field.Kind(); {
		case exact[field.FullName()] || field.FullName() == idsOf:
		case kind == protoreflect.MessageKind && field.IsList():
			for i, list := 0, value.List(); i < list.Len(); i++ {
				changed = redactMessage(list.Get(i).Message().Interface(), replace) || changed
			}
		case kind == protoreflect.MessageKind:
			changed = redactMessage(value.Message().Interface(), replace) || changed
		case kind != protoreflect.StringKind && kind != protoreflect.BytesKind:
		case field.IsList():
			for i, list := 0, value.List(); i < list.Len(); i++ {
				if v, differs := redactValue(list.Get(i), kind, replace); differs {
					list.Set(i, v)
					changed = true
				}
			}
		default:
			if v, differs := redactValue(value, kind, replace); differs {
				message.Set(field, v)
				changed = true
			}
		}
		return true
	})
	return changed
}

func redactValue(v protoreflect.Value, kind protoreflect.Kind, replace func(string) string) (protoreflect.Value, bool) {
	if kind == protoreflect.StringKind {
		before := v.String()
		after := replace(before)
		return protoreflect.ValueOfString(after), after != before
	}
	before := string(v.Bytes())
	after := redactJSON(before, replace)
	if after == before {
		return v, false
	}
	return protoreflect.ValueOfBytes([]byte(after)), true
}

// redactJSON replaces secrets in the strings and numbers of a JSON object and keeps it valid JSON.
// In any other text it replaces them where they stand.
func redactJSON(text string, replace func(string) string) string {
	plain := replace(text)
	if plain == text && !strings.Contains(text, `\u`) {
		return text
	}
	var object map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&object) != nil {
		return plain
	}
	changed := false
	redacted, err := json.Marshal(replaced(object, func(before string) string {
		after := replace(before)
		changed = changed || after != before
		return after
	}))
	if err != nil || !changed {
		return plain
	}
	return string(redacted)
}

// replaced replaces each string and number in a value that was decoded from JSON.
func replaced(value any, replace func(string) string) any {
	switch v := value.(type) {
	case string:
		return replace(v)
	case json.Number:
		if after := replace(v.String()); after != v.String() {
			return after
		}
	case []any:
		for i := range v {
			v[i] = replaced(v[i], replace)
		}
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, value := range v {
			all[replace(key)] = replaced(value, replace)
		}
		return all
	}
	return value
}

// redactIDs replaces each id separately, because the message also holds the length of each.
func redactIDs(c *stagepb.Candidates, replace func(string) string) bool {
	if replace(c.GetIds()) == c.GetIds() {
		return false
	}
	var ids strings.Builder
	rest := c.GetIds()
	for i, n := range c.GetIdBytes() {
		id := replace(rest[:min(int(n), len(rest))])
		rest = rest[min(int(n), len(rest)):]
		ids.WriteString(id)
		c.IdBytes[i] = uint32(len(id))
	}
	ids.WriteString(replace(rest)) // only a faulty reply has a rest, and it is refused
	c.Ids = ids.String()
	return true
}
