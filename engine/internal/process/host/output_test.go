package host

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/racflow/racflow/engine/internal/process/redact"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/wire"
)

// TestSecretsInAnyForm writes a secret in the forms in which logs write texts.
func TestSecretsInAnyForm(t *testing.T) {
	const secret = `pass/wörd"𝄞<1>`
	for name, line := range map[string]string{
		"plain":            secret,
		"quoted":           `{"x": "pass/wörd\"𝄞<1>"}`,
		"ascii":            `{"x": "pass/w\u00f6rd\"\ud834\udd1e<1>"}`,
		"slashes":          `{"x": "pass\/wörd\"𝄞<1>"}`,
		"an address":       `https://h/?key=pass%2Fw%C3%B6rd%22%F0%9D%84%9E%3C1%3E`,
		"logged":           `{"level":"INFO","msg":"m","a":"pass\u002fwörd\"𝄞<1>"}`,
		"logged in a list": `{"level":"INFO","msg":"m","a":[{"b":["pass\u002fwörd\"𝄞<1>"]}]}`,
		"logged as a name": `{"level":"INFO","msg":"m","a":{"pass\u002fwörd\"𝄞<1>":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			o := &output{log: slog.New(slog.NewTextHandler(&log, nil)), secrets: &redact.Secrets{}}
			lines := o.lines("stderr")
			o.secrets.Add(secret) // of a stage that starts later than the one that says it
			if _, err := lines.Write([]byte(line + "\n")); err != nil {
				t.Fatal(err)
			}
			if said := log.String(); !strings.Contains(said, "(secret)") || strings.Contains(said, "rd") {
				t.Errorf("the log says %s", said)
			}
		})
	}
}

// TestSecretsInPieces writes a secret in two pieces, in a line, and where a line that
// is too long has a gap.
func TestSecretsInPieces(t *testing.T) {
	const secret = "sk-first-half-second-half"
	for name, pieces := range map[string][]string{
		"two writes":     {"it is sk-first", "-half-second-half.\n"},
		"a long line":    {strings.Repeat("x", maxLine-9) + "sk-first", "-half-second-half and more\n"},
		"across a gap":   {strings.Repeat("x", maxLine+len(secret)) + "sk-first-", "half-second-half\n"},
		"without an end": {"sk-first-half-", "second-half"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			o := &output{log: slog.New(slog.NewTextHandler(&log, nil)), secrets: &redact.Secrets{}}
			o.secrets.Add(secret)
			lines := o.lines("stderr")
			for _, piece := range pieces {
				if _, err := lines.Write([]byte(piece)); err != nil {
					t.Fatal(err)
				}
				o.secrets.Add(strings.Repeat("another", 20)) // more of a line is held from now on
			}
			must.Do(t, lines.Close())
			for _, part := range []string{"sk-first", "half"} {
				if said := log.String() + o.tail(); strings.Contains(said, part) {
					t.Errorf("the log says %q of it: %s", part, said[max(0, len(said)-200):])
				}
			}
		})
	}
}

const hushed = "sk-hush-0123"

func knowing(values ...string) *redact.Secrets {
	s := &redact.Secrets{}
	s.Add(values...)
	return s
}

// fillTexts puts a text into every field that can hold it, and counts the texts, and
// what is exact.
func fillTexts(m protoreflect.Message, text string) (texts, kept int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		var v protoreflect.Value
		switch f.Kind() {
		case protoreflect.StringKind:
			v = protoreflect.ValueOfString(text)
		case protoreflect.BytesKind:
			v = protoreflect.ValueOfBytes([]byte(text))
		case protoreflect.MessageKind:
			part := m.NewField(f)
			if f.IsList() {
				part = m.Mutable(f).List().AppendMutable()
			} else {
				m.Set(f, part)
			}
			t, k := fillTexts(part.Message(), text)
			texts, kept = texts+t, kept+k
			continue
		default:
			continue
		}
		if exact[f.FullName()] {
			kept++
		} else {
			texts++
		}
		if f.IsList() {
			m.Mutable(f).List().Append(v)
		} else {
			m.Set(f, v)
		}
	}
	return texts, kept
}

// TestEveryTextOfAReply fills all that replies can hold: a field that the wire gets
// one day is redacted as well, or stands among the exact ones.
func TestEveryTextOfAReply(t *testing.T) {
	methods := stagepb.File_stage_proto.Services().ByName("Stage").Methods()
	for i := range methods.Len() {
		method := methods.Get(i)
		typ, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
		must.Do(t, err)
		reply := typ.New().Interface()
		if _, work := reply.(failing); !work {
			switch method.Name() {
			case "Describe", "Configure", "Validate", "Alive": // their texts are taken out one by one
				continue
			}
			t.Errorf("%s has a reply without a failure", method.Name())
		}
		texts, kept := fillTexts(reply.ProtoReflect(), "it is "+hushed+".")
		if r, ok := reply.(*stagepb.RowsReply); ok {
			r.Rows.Candidates.IdBytes = []uint32{uint32(len(r.Rows.Candidates.Ids))}
		}
		if r, ok := reply.(*stagepb.ScanReply); ok {
			r.Rows.Candidates.IdBytes = []uint32{uint32(len(r.Rows.Candidates.Ids))}
		}
		if !redactMessage(reply, knowing(hushed).Result) {
			t.Error("nothing is replaced")
		}
		raw, err := proto.Marshal(reply)
		must.Do(t, err)
		if n := bytes.Count(raw, []byte("it is (secret).")); n != texts {
			t.Errorf("%s: %d texts are redacted, want %d", method.Name(), n, texts)
		}
		if n := bytes.Count(raw, []byte(hushed)); n != kept {
			t.Errorf("%s: %d texts are exact, want %d", method.Name(), n, kept)
		}
		if redactMessage(reply, knowing("another secret").Result) {
			t.Error("something is replaced where there is nothing")
		}
	}
}

// A handle is kept on the disk and given back as it is: one with a secret is refused.
func TestSecretInHandle(t *testing.T) {
	p := &Process{out: &output{log: slog.New(slog.DiscardHandler), secrets: knowing(hushed)}}
	for handle, refused := range map[string]bool{"batch-1": false, "key=" + hushed: true} {
		reply := &stagepb.RowsReply{Pending: &stagepb.Pending{Handle: handle}}
		p.hide(reply)
		if (reply.Failure != nil) != refused || (reply.Pending == nil) != refused || !refused && reply.Pending.Handle != handle {
			t.Errorf("%s: %v", handle, reply)
		}
	}
}

func TestRedactedReplies(t *testing.T) {
	rows, err := wire.EncodeCandidates([][]sdk.Candidate{
		{{ID: "a" + hushed, Label: "x", Text: "one"}, {ID: "b", Label: hushed}}, {{ID: "c", Label: "x", Context: "of " + hushed, Meta: sdk.Meta{
			"n": 4711471147.0, hushed: true, "s": `"` + hushed, "plain": 1.5,
		}}},
	}, true)
	must.Do(t, err)
	// What another encoder of JSON may write, and a note that is none.
	reply := &stagepb.RowsReply{Rows: rows}
	listed := &stagepb.ListCollectionsReply{Collections: []*stagepb.Collection{
		{Name: hushed, Note: []byte(`{"a": "sk\u002dhush-0123", "n": 10000000000000001}`)}, {Note: []byte("[" + hushed)},
	}}
	p := &Process{out: &output{log: slog.New(slog.DiscardHandler), secrets: knowing(hushed, "4711471147", "x")}}
	p.hide(reply)
	p.hide(listed)
	got, err := wire.DecodeCandidates(reply.Rows, 2)
	must.Do(t, err)
	if a, b, c := got[0][0], got[0][1], got[1][0]; a.ID != "a(secret)" || b.ID != "b" || c.ID != "c" ||
		a.Label != "x" || b.Label != "(secret)" || c.Label != "x" || c.Context != "of (secret)" ||
		fmt.Sprint(c.Meta) != fmt.Sprint(sdk.Meta{"n": "(secret)", "(secret)": true, "s": `"(secret)`, "plain": 1.5}) {
		t.Errorf("got %+v", got)
	}
	if c := listed.Collections; c[0].Name != hushed || string(c[0].Note) != `{"a":"(secret)","n":10000000000000001}` || string(c[1].Note) != "[(secret)" {
		t.Errorf("got %v", c)
	}

	failed := &stagepb.RowsReply{Failure: &stagepb.Failure{Message: "no x here"}, Errors: []*stagepb.RowError{{Failure: &stagepb.Failure{Message: "x" + hushed}}}}
	p.hide(failed)
	if failed.Failure.Message != "no (secret) here" || failed.Errors[0].Failure.Message != "(secret)(secret)" {
		t.Errorf("got %v", failed)
	}

	attached := &stagepb.AttachReply{
		Attached: &stagepb.Attached{Name: hushed, Notes: []string{"of x"}}, Errors: []*stagepb.ArgumentError{{Argument: "collection", Message: "no x here"}},
	}
	p.hide(attached)
	if a := attached; a.Attached.Name != hushed || a.Attached.Notes[0] != "of (secret)" || a.Errors[0].Argument != "collection" || a.Errors[0].Message != "no (secret) here" {
		t.Errorf("got %v", attached)
	}
}
