package wire

import (
	"math"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func someDocuments() []sdk.Document {
	return []sdk.Document{
		{ID: "a.md", Text: "one two", Meta: sdk.Meta{"path": "a.md", "pages": 2.0}},
		{ID: "b.md", Text: ""},
		{ID: "c.md", Text: "né\u0301e"},
	}
}

func someChunks() [][]sdk.Chunk {
	return [][]sdk.Chunk{{{Start: 0, End: 7}, {Start: 0, End: 3, Meta: sdk.Meta{"headings": "One"}}, {Start: 2, End: 7, Header: sdk.Span{Start: 0, End: 2}}}, nil, {{Start: 1, End: 3}}}
}

func TestChunksAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*stagepb.Rows){
		"no column":                   func(r *stagepb.Rows) { r.Chunks = nil },
		"a row too few":               func(r *stagepb.Rows) { r.N, r.Chunks.Offsets = 2, r.Chunks.Offsets[:3] },
		"beyond the text":             func(r *stagepb.Rows) { r.Chunks.End[2] = 8 },
		"in an empty text":            func(r *stagepb.Rows) { r.Chunks.Offsets = []uint32{0, 2, 3, 4} },
		"a huge position":             func(r *stagepb.Rows) { r.Chunks.End[2] = math.MaxUint32 },
		"empty":                       func(r *stagepb.Rows) { r.Chunks.Start[2] = 7 },
		"turned round":                func(r *stagepb.Rows) { r.Chunks.Start[1] = 5 },
		"out of order":                func(r *stagepb.Rows) { r.Chunks.Start[0] = 1 },
		"inside a character":          func(r *stagepb.Rows) { r.Chunks.Start[3] = 2 },
		"end inside one":              func(r *stagepb.Rows) { r.Chunks.End[3] = 2 },
		"an end missing":              func(r *stagepb.Rows) { r.Chunks.End = r.Chunks.End[:3] },
		"offsets out of order":        func(r *stagepb.Rows) { r.Chunks.Offsets[1] = 9 },
		"metadata of too few":         func(r *stagepb.Rows) { r.Chunks.Meta = r.Chunks.Meta[:3] },
		"a header that is empty":      func(r *stagepb.Rows) { r.Chunks.HeaderEnd[2], r.Chunks.HeaderStart[2] = 1, 1 },
		"a header behind its chunk":   func(r *stagepb.Rows) { r.Chunks.HeaderEnd[2] = 3 },
		"a header inside a character": func(r *stagepb.Rows) { r.Chunks.Start[3], r.Chunks.HeaderEnd[3] = 3, 2 },
		"headers of too few": func(r *stagepb.Rows) {
			r.Chunks.HeaderStart, r.Chunks.HeaderEnd = r.Chunks.HeaderStart[:3], r.Chunks.HeaderEnd[:3]
		},
		"an end of a header is missing": func(r *stagepb.Rows) { r.Chunks.HeaderEnd = nil },
		"metadata that is none":         func(r *stagepb.Rows) { r.Chunks.Meta[1] = []byte(`{"a":[]}`) },
	} {
		rows, err := EncodeChunks(someChunks())
		must.Do(t, err)
		rows = overWire(t, rows)
		spoil(rows)
		if _, err := DecodeChunks(rows, someDocuments()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// The receiver refuses the output of a faulty stage.
	rows, err := EncodeChunks([][]sdk.Chunk{{{Start: -1, End: 3}}})
	must.Do(t, err)
	if _, err := DecodeChunks(rows, someDocuments()[:1]); err == nil {
		t.Error("a negative position was accepted")
	}
}
