package host

import (
	"encoding/json"
	"errors"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/racflow/racflow/engine/redact"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// hide replaces secrets in a reply, whichever stage they were given to: all of them
// in failures, and in results those that are long enough.
func (p *Process) hide(reply proto.Message) {
	failures := []*stagepb.Failure{reply.(failing).GetFailure()}
	if r, ok := reply.(interface{ GetErrors() []*stagepb.RowError }); ok {
		for _, e := range r.GetErrors() {
			failures = append(failures, e.GetFailure())
		}
	}
	for _, f := range failures {
		if f != nil {
			f.Message = p.out.secrets.Message(f.GetMessage())
		}
	}
	if r, ok := reply.(*stagepb.RowsReply); ok && r.GetPending() != nil && p.out.secrets.Result(r.GetPending().GetHandle()) != r.GetPending().GetHandle() {
		r.Pending = nil // it would be written to the disk
		r.Failure = wire.EncodeFailure(sdk.Invalid(errors.New("a secret stands in the handle of results that come later; the plugin has to name its work in another way")))
	}
	if r, ok := reply.(*stagepb.RowsReply); ok && r.GetPending() != nil { // its note is for people, as a failure is
		r.Pending.Note = p.out.secrets.Message(r.Pending.GetNote())
	}
	if r, ok := reply.(*stagepb.AttachReply); ok { // all of it is for people
		redactMessage(r, p.out.secrets.Message)
	}
	if p.out.secrets.InResults() && redactMessage(reply, p.out.secrets.Result) {
		p.masked.Do(func() {
			p.out.log.Warn("a secret stood in the stage's results, which hold " + redact.Placeholder + " in its place")
		})
	}
}

// failing is every reply to work.
type failing interface{ GetFailure() *stagepb.Failure }

// What is no text, and what the engine gives back as it got it.
var exact = map[protoreflect.FullName]bool{
	"racflow.stage.v2.Rows.vectors":     true,
	"racflow.stage.v2.Rows.hash":        true,
	"racflow.stage.v2.Pending.handle":   true,
	"racflow.stage.v2.ScanReply.cursor": true,
	"racflow.stage.v2.Collection.name":  true,
	"racflow.stage.v2.Attached.name":    true,
}

// idsOf is a column of texts that stand one after the other.
const idsOf = "racflow.stage.v2.Candidates.ids"

// redactMessage replaces each text in a message, with those in the messages that it
// is made of, and reports whether that changed one.
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

// redactJSON replaces secrets in the strings and numbers of a JSON object, which it
// stays; in any other text, where they stand.
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
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			changed = changed || replace(v) != v
			return replace(v)
		case json.Number:
			if number := v.String(); replace(number) != number {
				changed = true
				return replace(number)
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			all := make(map[string]any, len(v))
			for key, value := range v {
				all[walk(key).(string)] = walk(value)
			}
			return all
		}
		return v
	}
	redacted, err := json.Marshal(walk(object))
	if err != nil || !changed {
		return plain
	}
	return string(redacted)
}

// redactIDs replaces each id for itself, since their lengths stand beside them.
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
	ids.WriteString(replace(rest)) // of a faulty reply, which is refused
	c.Ids = ids.String()
	return true
}
