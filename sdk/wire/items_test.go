package wire

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// somePassages returns the passages of someChunks in someDocuments.
func somePassages() []sdk.Passage {
	documents, lists := someDocuments(), someChunks()
	var all []sdk.Passage
	for i := range documents {
		for _, c := range lists[i] {
			all = append(all, sdk.Passage{Document: &documents[i], Chunk: c})
		}
	}
	return all
}

func someAdditions() []sdk.Addition {
	return []sdk.Addition{{Context: "It is about ports.", Terms: []string{"port", "which port?"}}, {}, {Terms: []string{""}}, {Context: "é"}}
}

func passageRows(t testing.TB, passages []sdk.Passage) *stagepb.Rows {
	t.Helper()
	rows, err := EncodePassages(passages)
	must.Do(t, err)
	return overWire(t, rows)
}

// Two documents may have the same content and are still two.
func TestPassagesOfTwins(t *testing.T) {
	twins := []sdk.Document{{ID: "a", Text: "text"}, {ID: "a", Text: "text"}}
	got, err := DecodePassages(passageRows(t, []sdk.Passage{
		{Document: &twins[0], Chunk: sdk.Chunk{End: 4}}, {Document: &twins[1], Chunk: sdk.Chunk{Start: 1, End: 2}},
	}))
	if err != nil || len(got) != 2 || got[0].Document == got[1].Document {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestPassagesAreNotSent(t *testing.T) {
	a, b, bad := &sdk.Document{ID: "a", Text: "text"}, &sdk.Document{ID: "b", Text: "text"}, &sdk.Document{ID: "bad", Text: "caf\xe9 \xff\xff"}
	whole := func(d *sdk.Document) sdk.Passage { return sdk.Passage{Document: d, Chunk: sdk.Chunk{End: len(d.Text)}} }
	for name, c := range map[string]struct {
		passages []sdk.Passage
		want     string
	}{
		"without a document": {[]sdk.Passage{whole(a), {Chunk: sdk.Chunk{End: 1}}}, "passage 1 has no document"},
		"torn apart":         {[]sdk.Passage{whole(a), whole(b), whole(a)}, `passage 2 is of document "a"`},
		"metadata that no JSON holds": {[]sdk.Passage{{Document: a, Chunk: sdk.Chunk{End: 1, Meta: sdk.Meta{"n": math.NaN()}}}},
			"metadata"},
		"parts of what is not UTF-8": {[]sdk.Passage{whole(bad), {Document: bad, Chunk: sdk.Chunk{Start: 1, End: 3}}}, "not valid UTF-8"},
	} {
		if rows, err := EncodePassages(c.passages); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, rows, err)
		}
	}
	got, err := DecodePassages(passageRows(t, []sdk.Passage{whole(bad), whole(a)}))
	if err != nil || got[0].Text() != "caf\uFFFD \uFFFD" || got[1].Text() != "text" {
		t.Errorf("a whole text that is not UTF-8 gave %v, %v", got, err)
	}
	if bad.Text != "caf\xe9 \xff\xff" {
		t.Error("the document was changed")
	}
}

func TestPassagesAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*stagepb.Rows){
		"no chunks":             func(r *stagepb.Rows) { r.Chunks = nil },
		"no texts":              func(r *stagepb.Rows) { r.Text = nil },
		"more rows than there":  func(r *stagepb.Rows) { r.N = math.MaxUint32 },
		"a row too few":         func(r *stagepb.Rows) { r.Chunks.Offsets = r.Chunks.Offsets[:2] },
		"beyond the text":       func(r *stagepb.Rows) { r.Chunks.End[0] = 8 },
		"a huge position":       func(r *stagepb.Rows) { r.Chunks.End[0] = math.MaxUint32 },
		"nothing of it":         func(r *stagepb.Rows) { r.Chunks.End[3] = r.Chunks.Start[3] },
		"inside a character":    func(r *stagepb.Rows) { r.Chunks.Start[3] = 2 },
		"out of order":          func(r *stagepb.Rows) { r.Chunks.Start[0] = 1 },
		"metadata that is none": func(r *stagepb.Rows) { r.Chunks.Meta[1] = []byte("{") },
		"a document's is none":  func(r *stagepb.Rows) { r.Meta[0] = []byte(`{"a":null}`) },
	} {
		rows := passageRows(t, somePassages())
		spoil(rows)
		if got, err := DecodePassages(rows); err == nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestAdditionsAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*stagepb.Rows){
		"one too few":          func(r *stagepb.Rows) { r.N = 3 },
		"a huge number":        func(r *stagepb.Rows) { r.N = math.MaxUint32 },
		"a context too few":    func(r *stagepb.Rows) { r.Context = r.Context[:3] },
		"an offset too few":    func(r *stagepb.Rows) { r.Terms.Offsets = r.Terms.Offsets[:4] },
		"no offsets":           func(r *stagepb.Rows) { r.Terms.Offsets = nil },
		"offsets out of order": func(r *stagepb.Rows) { r.Terms.Offsets[1] = 9 },
		"a term too few":       func(r *stagepb.Rows) { r.Terms.Term = r.Terms.Term[:2] },
	} {
		rows := overWire(t, EncodeAdditions(someAdditions()))
		spoil(rows)
		if got, err := DecodeAdditions(rows, 4); err == nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
	_, err := DecodeAdditions(EncodeAdditions(someAdditions()[:3]), 4)
	if want := "3 additions to 4 passages"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func FuzzEnrich(f *testing.F) {
	for _, rows := range []*stagepb.Rows{passageRows(f, somePassages()), passageRows(f, nil), EncodeAdditions(someAdditions()), {N: math.MaxUint32}} {
		raw, err := proto.Marshal(rows)
		must.Do(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		rows := &stagepb.Rows{}
		if proto.Unmarshal(raw, rows) != nil {
			return
		}
		if passages, err := DecodePassages(rows); err == nil {
			for _, p := range passages {
				_ = p.Text()
			}
			again, err := DecodePassages(passageRows(t, passages))
			if diff := cmp.Diff(passages, again, same); err != nil || diff != "" {
				t.Fatalf("decoded passages do not survive: %v %s", err, diff)
			}
		}
		n := min(int(rows.N), 1<<16)
		if additions, err := DecodeAdditions(rows, n); err == nil {
			again, err := DecodeAdditions(overWire(t, EncodeAdditions(additions)), n)
			if diff := cmp.Diff(additions, again, same); err != nil || diff != "" {
				t.Fatalf("decoded additions do not survive: %v %s", err, diff)
			}
		}
	})
}
