package wire

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

const everything = sdk.Columns(math.MaxUint32)

func fullBatch() sdk.Batch {
	return sdk.Batch{
		Labels:    []string{"card", "pin"},
		Described: map[string]sdk.Described{"card": {Name: "Cards", Text: "Lost and new cards."}, "pin": {Text: "Forgotten numbers.", Alone: true}},
		Items: []sdk.Item{
			{
				ID: "1", Text: "my card is gone", Meta: sdk.Meta{"age": 3.5, "new": true, "who": "Ana"}, Vector: []float32{1, -2},
				Candidates: []sdk.Candidate{
					{ID: "a", Text: "lost card", Label: "card", Context: "shop", Meta: sdk.Meta{"x": "y"}, Score: .5, Dense: .25, Lexical: 7},
					{ID: "b", Label: "pin", Score: .4, Dense: sdk.Unscored, Lexical: 2},
					{ID: "c", Label: "card", Score: .3, Dense: .1, Lexical: sdk.Unscored},
				},
				Prototypes: []sdk.Candidate{{Label: "card", Dense: .9, Lexical: sdk.Unscored}},
				Random:     []sdk.Candidate{{ID: "r", Text: "any", Label: "", Score: 1}},
				Prompts: []sdk.Prompt{
					{Text: "one"}, {Text: ""},
					{Text: "which?", Labels: []string{"card", "pin"}, None: "neither", Fields: []string{"why", "label"}, Levels: "/"},
					{
						Messages: []sdk.Message{{Role: "system", Text: "passages", Shared: true}, {Role: "user", Text: "where?"}},
						None:     "not there", Passages: []string{"a#1", "b"},
					},
				},
				Samples: []sdk.Sample{
					{Voter: "knn", Answers: []sdk.Answer{{Label: "card", Weight: .75, Accepted: true}, {Label: "pin", Weight: .25}}},
					{Voter: "llm", Usage: sdk.Usage{InputTokens: 9, OutputTokens: 2}, Text: "**card**", Model: "small", Key: sdk.KeyOf("request")},
					{Voter: "llm", Answers: []sdk.Answer{{Label: "pin", Weight: 1, Reading: "without markup", Explanation: "it says so"}}},
				},
			},
			{ID: "2", Text: "", Vector: []float32{0, 0}, Drawn: 2, Rejected: []sdk.Rejection{{Text: "cards", Reason: "no label"}, {Text: "?"}}},
		},
	}
}

// overWire marshals and unmarshals rows.
func overWire(t testing.TB, rows *stagepb.Rows) *stagepb.Rows {
	t.Helper()
	raw, err := proto.Marshal(rows)
	must.Do(t, err)
	out := &stagepb.Rows{}
	must.Do(t, proto.Unmarshal(raw, out))
	return out
}

var same = cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateNaNs()}

func TestBatchRoundTrip(t *testing.T) {
	rows, err := EncodeBatch(fullBatch(), everything)
	must.Do(t, err)
	got, err := DecodeBatch(overWire(t, rows))
	must.Do(t, err)
	if diff := cmp.Diff(fullBatch(), got, same); diff != "" {
		t.Error(diff)
	}
}

func TestProjectionSendsOnlyWhatIsRead(t *testing.T) {
	all := fullBatch()
	for _, c := range []struct {
		reads sdk.Columns
		want  func(*sdk.Item)
	}{
		{0, func(*sdk.Item) {}},
		{sdk.Of(sdk.ColumnText), func(it *sdk.Item) { it.Text = all.Items[0].Text }},
		{sdk.Of(sdk.ColumnVector, sdk.ColumnMeta), func(it *sdk.Item) { it.Vector, it.Meta = all.Items[0].Vector, all.Items[0].Meta }},
		{sdk.Of(sdk.ColumnCandidateTexts), func(it *sdk.Item) { it.Candidates = all.Items[0].Candidates }},
		{sdk.Of(sdk.ColumnCandidates), func(it *sdk.Item) {
			for _, c := range all.Items[0].Candidates {
				c.Text, c.Context, c.Meta = "", "", nil
				it.Candidates = append(it.Candidates, c)
			}
		}},
		{sdk.Of(sdk.ColumnSamples), func(it *sdk.Item) { it.Samples = all.Items[0].Samples }},
	} {
		rows, err := EncodeBatch(all, c.reads)
		must.Do(t, err)
		got, err := DecodeBatch(rows)
		must.Do(t, err)
		want := sdk.Item{ID: "1"}
		c.want(&want)
		if diff := cmp.Diff(want, got.Items[0], same); diff != "" {
			t.Errorf("reads %b: %s", c.reads, diff)
		}
		if got.Labels != nil || got.Described != nil {
			t.Errorf("reads %b: labels were sent", c.reads)
		}
	}
}

// A prompt that shows no passage still wants a text, not a label.
func TestPromptsKeepNoPassages(t *testing.T) {
	want := [][]sdk.Prompt{{{Text: "a", Passages: []string{}}, {Text: "b"}}}
	got, err := DecodePrompts(overWire(t, EncodePrompts(want)), 1)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func fullFilter() *sdk.Filter {
	return &sdk.Filter{Op: sdk.FilterOr, Parts: []sdk.Filter{
		{Op: sdk.FilterNot, Parts: []sdk.Filter{{Op: sdk.FilterIn, Field: sdk.FieldMeta, Key: "any key", Values: []any{"a", -1.5, true}}}},
		{Op: sdk.FilterAnd, Parts: []sdk.Filter{
			{Op: sdk.FilterLess, Field: sdk.FieldMeta, Key: "year", Values: []any{2020.0}},
			{Op: sdk.FilterLessEqual, Field: sdk.FieldMeta, Key: "", Values: []any{"x"}},
			{Op: sdk.FilterGreater, Field: sdk.FieldID, Values: []any{""}},
			{Op: sdk.FilterGreaterEqual, Field: sdk.FieldLabel, Values: []any{"m"}},
			{Op: sdk.FilterPrefix, Field: sdk.FieldID, Values: []any{"faq-"}},
			{Op: sdk.FilterIn, Field: sdk.FieldLabel},
			{Op: sdk.FilterAnd},
		}},
	}}
}

// searchFor encodes a search with these filters, and marshals it.
func searchFor(t testing.TB, filters ...*sdk.Filter) *stagepb.SearchRequest {
	t.Helper()
	queries := make([]sdk.Query, len(filters))
	for i, f := range filters {
		queries[i].Filter = f
	}
	search, err := EncodeSearch("c", sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeDense}, Fusion: sdk.Fusion{Method: "rrf"}}, queries)
	must.Do(t, err)
	raw, err := proto.Marshal(search)
	must.Do(t, err)
	out := &stagepb.SearchRequest{}
	must.Do(t, proto.Unmarshal(raw, out))
	return out
}

func TestFiltersAreRefused(t *testing.T) {
	deep := &stagepb.Filter{}
	for f, n := deep, 0; n < 1000; n++ {
		f.Op, f.Parts = stagepb.FilterOp_FILTER_OP_NOT, []*stagepb.Filter{{}}
		f = f.Parts[0]
	}
	in := func(values ...*stagepb.Value) *stagepb.Filter {
		return &stagepb.Filter{Op: stagepb.FilterOp_FILTER_OP_IN, Field: stagepb.Field_FIELD_ID, Values: values}
	}
	for name, spoil := range map[string]func(*stagepb.SearchRequest){
		"a number without a filter": func(s *stagepb.SearchRequest) { s.QueryFilter[1] = 2 },
		"a huge number":             func(s *stagepb.SearchRequest) { s.QueryFilter[0] = math.MaxUint32 },
		"numbers missing":           func(s *stagepb.SearchRequest) { s.QueryFilter = s.QueryFilter[:1] },
		"numbers without queries":   func(s *stagepb.SearchRequest) { s.Queries = nil },
		"an unknown operator":       func(s *stagepb.SearchRequest) { s.Filters[0].Op = 10 },
		"no operator":               func(s *stagepb.SearchRequest) { s.Filters[0].Op = 0 },
		"an operator out of range":  func(s *stagepb.SearchRequest) { s.Filters[0].Op = 260 },
		"a negative operator":       func(s *stagepb.SearchRequest) { s.Filters[0].Op = -1 },
		"an unknown field":          func(s *stagepb.SearchRequest) { s.Filters[0] = &stagepb.Filter{Op: 4, Field: 257} },
		"a part without anything":   func(s *stagepb.SearchRequest) { s.Filters[0].Parts = append(s.Filters[0].Parts, nil) },
		"a value without anything":  func(s *stagepb.SearchRequest) { s.Filters[0] = in(&stagepb.Value{}) },
		"no value at all":           func(s *stagepb.SearchRequest) { s.Filters[0] = in(nil) },
		"an id that is a bool":      func(s *stagepb.SearchRequest) { s.Filters[0] = in(&stagepb.Value{Value: &stagepb.Value_Truth{}}) },
		"too deep":                  func(s *stagepb.SearchRequest) { s.Filters[0] = deep },
		"an unused one at fault":    func(s *stagepb.SearchRequest) { s.Filters = append(s.Filters, deep) },
	} {
		search := searchFor(t, fullFilter(), nil)
		spoil(search)
		if _, _, err := DecodeSearch(search); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzFilters(f *testing.F) {
	for _, search := range []*stagepb.SearchRequest{
		searchFor(f, fullFilter(), nil), searchFor(f, nil), {QueryFilter: []uint32{1}},
		{Mode: 1, Fusion: 1, Filters: []*stagepb.Filter{{Op: 3, Parts: []*stagepb.Filter{{Op: 3}}}}},
	} {
		raw, err := proto.Marshal(search)
		must.Do(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		search := &stagepb.SearchRequest{}
		if proto.Unmarshal(raw, search) != nil {
			return
		}
		r, queries, err := DecodeSearch(search)
		if err != nil {
			return
		}
		again, err := EncodeSearch(search.Collection, r, queries)
		if err != nil {
			t.Fatalf("a decoded search cannot be encoded: %v", err)
		}
		_, same, err := DecodeSearch(again)
		if err != nil {
			t.Fatalf("an encoded search cannot be decoded: %v", err)
		}
		for i, q := range queries {
			if q.Filter.String() != same[i].Filter.String() {
				t.Errorf("query %d: %v became %v", i, q.Filter, same[i].Filter)
			}
			_ = q.Filter.Match("id", "label", sdk.Meta{"year": 1.0})
		}
	})
}

func TestInvalidUTF8DoesNotStopABatch(t *testing.T) {
	bad := "caf\xe9"
	b := sdk.Batch{Labels: []string{bad}, Items: []sdk.Item{{
		ID: bad, Text: bad, Meta: sdk.Meta{"m": bad}, Prompts: []sdk.Prompt{{Text: bad}},
		Candidates: []sdk.Candidate{{ID: bad, Text: bad, Label: bad, Context: bad}},
		Samples:    []sdk.Sample{{Voter: bad, Answers: []sdk.Answer{{Label: bad}}}},
	}}}
	rows, err := EncodeBatch(b, everything)
	must.Do(t, err)
	got, err := DecodeBatch(overWire(t, rows))
	must.Do(t, err)
	if it := got.Items[0]; it.Text != "caf\uFFFD" || it.Candidates[0].Label != it.Text || it.Meta["m"] != it.Text {
		t.Errorf("got %+v", it)
	}
}

func TestDecodersRefuse(t *testing.T) {
	for name, spoil := range map[string]func(*stagepb.Rows){
		"more rows than ids":        func(r *stagepb.Rows) { r.N = math.MaxUint32 },
		"short text column":         func(r *stagepb.Rows) { r.Text = r.Text[:1] },
		"short meta column":         func(r *stagepb.Rows) { r.Meta = [][]byte{nil} },
		"meta that is a list":       func(r *stagepb.Rows) { r.Meta[0] = []byte(`[1]`) },
		"nested meta":               func(r *stagepb.Rows) { r.Meta[0] = []byte(`{"a":{"b":1}}`) },
		"vectors cut":               func(r *stagepb.Rows) { r.Vectors = r.Vectors[:7] },
		"dimension without vectors": func(r *stagepb.Rows) { r.Vectors = nil },
		"huge dimension":            func(r *stagepb.Rows) { r.Dimension = math.MaxUint32 },
		"falling offsets":           func(r *stagepb.Rows) { r.Candidates.Offsets = []uint32{0, 3, 2} },
		"offsets that start later":  func(r *stagepb.Rows) { r.Candidates.Offsets[0] = 1 },
		"offsets beyond the end":    func(r *stagepb.Rows) { r.Candidates.Offsets[2] = math.MaxUint32 },
		"an offset missing":         func(r *stagepb.Rows) { r.Prompts.Offsets = r.Prompts.Offsets[:2] },
		"a label without a name":    func(r *stagepb.Rows) { r.Candidates.Label[0] = 9 },
		"ids beyond the end":        func(r *stagepb.Rows) { r.Candidates.IdBytes[2] = 99 },
		"scores missing":            func(r *stagepb.Rows) { r.Candidates.Score = r.Candidates.Score[:1] },
		"an answer without a name":  func(r *stagepb.Rows) { r.Samples.Answer[0] = 9 },
		"an allowed label too many": func(r *stagepb.Rows) { r.Prompts.Allowed[2].Labels[0] = 9 },
		"passages and labels":       func(r *stagepb.Rows) { r.Prompts.Allowed[3].Labels = []uint32{0} },
		"passages and fields":       func(r *stagepb.Rows) { r.Prompts.Allowed[3].Fields = []string{"label"} },
		"a weight missing":          func(r *stagepb.Rows) { r.Samples.Weight = r.Samples.Weight[:1] },
		"answer offsets missing":    func(r *stagepb.Rows) { r.Samples.AnswerOffsets = nil },
	} {
		rows, err := EncodeBatch(fullBatch(), everything)
		must.Do(t, err)
		spoil(rows)
		if _, err := DecodeBatch(rows); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		err   error
		code  sdk.Code
		after time.Duration
	}{
		{errors.New("plain"), sdk.CodeInternal, 0},
		{sdk.Invalid(errors.New("empty text")), sdk.CodeInvalid, 0},
		{fmt.Errorf("call: %w", sdk.Transient(errors.New("busy \xff"), 1500*time.Microsecond)), sdk.CodeTransient, 2 * time.Millisecond},
		{fmt.Errorf("call: %w", context.Canceled), sdk.CodeCancelled, 0},
		{context.DeadlineExceeded, sdk.CodeDeadline, 0},
	} {
		got := DecodeFailure(EncodeFailure(c.err))
		var coded *sdk.Error
		if !errors.As(got, &coded) || coded.Code != c.code || coded.RetryAfter != c.after || got.Error() != strings.ToValidUTF8(c.err.Error(), "\uFFFD") {
			t.Errorf("%v: got %#v", c.err, got)
		}
	}
	failed := sdk.RowErrors{2: errors.New("b"), 0: sdk.Invalid(errors.New("a"))}
	got, err := DecodeRowErrors(EncodeRowErrors(failed), 3)
	if err != nil || len(got) != 2 || sdk.CodeOf(got[0]) != sdk.CodeInvalid || got[2].Error() != "b" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := DecodeRowErrors(EncodeRowErrors(failed), 2); err == nil {
		t.Error("an error for row 2 of 2 was accepted")
	}
}

func TestArgumentErrors(t *testing.T) {
	err := errors.Join(
		&sdk.ArgumentError{Argument: "model", Err: errors.New("it is required")},
		fmt.Errorf("open: %w", &sdk.ArgumentError{Argument: "k", Path: []string{"a", "2"}, Err: errors.New("too large")}),
		errors.New("no model folder"),
	)
	var got []string
	for _, fault := range DecodeArgumentErrors(EncodeArgumentErrors(err)) {
		got = append(got, fault.Argument+"|"+fault.Error())
	}
	if want := []string{"model|model: it is required", `k|k["a"][2]: too large`, "|no model folder"}; !cmp.Equal(want, got) {
		t.Errorf("got %q, want %q", got, want)
	}
	if DecodeArgumentErrors(nil) != nil {
		t.Error("no faults are an error")
	}
}

func TestPluginRoundTrip(t *testing.T) {
	type config struct {
		Key     string              `config:"key,required,secret" doc:"The key."`
		Mode    string              `config:"mode" default:"chat" one_of:"chat,completion" doc:"How to ask."`
		Timeout time.Duration       `config:"timeout" affects_output:"false" default:"30s" above:"0s" max:"1h" doc:"How long to wait."`
		Weights map[string]float64  `config:"weights" min:"0" min_length:"1" example:"{ llm = 2 }"`
		Grid    []float64           `config:"grid" below:"1" max_length:"3"`
		Lists   map[string][]string `config:"lists" pattern:"^[a-z]+$" since:"0.2.0"`
		User    string              `config:"user" requires:"mode" conflicts:"key"`
		Profile struct {
			Effort string `config:"effort" one_of:"low,high"`
		} `config:"profile"`
	}
	want := sdk.Plugin{Name: "acme", Version: "0.1.0", Stages: []sdk.Stage{
		sdk.SampleStage("coin", "Votes.", func(context.Context, sdk.Setup, config) (sdk.Sampler, error) { return nil, nil },
			sdk.Reads(sdk.ColumnText, sdk.ColumnSamples), sdk.Network(), sdk.PreferBatch(32), sdk.Example("mode = \"chat\""), sdk.Validates(func(config) error { return nil })),
		sdk.StoreStage("shelf", "Keeps.", func(context.Context, sdk.Setup, config) (sdk.Store, error) { return nil, nil }, sdk.Filters()),
	}}
	got, err := DecodePlugin(EncodePlugin(want))
	must.Do(t, err)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(sdk.Stage{}), same); diff != "" {
		t.Error(diff)
	}
	if _, err := got.Stages[0].Open(t.Context(), sdk.Setup{}, nil); err == nil {
		t.Error("a described stage was opened")
	}
	for name, spoil := range map[string]func(*stagepb.DescribeReply){
		"unknown kind":      func(r *stagepb.DescribeReply) { r.Stages[0].Kind = 99 },
		"unknown column":    func(r *stagepb.DescribeReply) { r.Stages[0].Reads[0] = 257 },
		"unknown type":      func(r *stagepb.DescribeReply) { r.Stages[0].Arguments[0].Type = 0 },
		"impossible name":   func(r *stagepb.DescribeReply) { r.Stages[0].Name = "a/b" },
		"unnamed":           func(r *stagepb.DescribeReply) { r.Name = "" },
		"a default astray":  func(r *stagepb.DescribeReply) { r.Stages[0].Arguments[1].DefaultJson = `"shout"` },
		"a range of texts":  func(r *stagepb.DescribeReply) { r.Stages[0].Arguments[0].Min = new(float64) },
		"a bad pattern":     func(r *stagepb.DescribeReply) { r.Stages[0].Arguments[0].Pattern = "(" },
		"needs nothing":     func(r *stagepb.DescribeReply) { r.Stages[0].Arguments[0].Requires = []string{"other"} },
		"an empty block":    func(r *stagepb.DescribeReply) { r.Stages[0].Arguments[7].Fields = nil },
		"secret in a block": func(r *stagepb.DescribeReply) { r.Stages[0].Arguments[7].Fields[0].Secret = true },
		"fields of a text":  func(r *stagepb.DescribeReply) { r.Stages[0].Arguments[0].Fields = r.Stages[0].Arguments[7].Fields },
	} {
		reply := EncodePlugin(want)
		spoil(reply)
		if _, err := DecodePlugin(reply); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	rows, err := EncodeBatch(fullBatch(), everything)
	must.Do(f, err)
	entries, err := EncodeEntries([]sdk.Entry{{ID: "a", Hash: []byte{1}, Vector: []float32{1}}})
	must.Do(f, err)
	for _, r := range []*stagepb.Rows{rows, entries, EncodeVerdicts([]sdk.Verdict{{Answer: "a"}}), EncodeRankings([][]sdk.Ranked{{{Candidate: 2, Score: 1}, {}}, nil}), {N: math.MaxUint32}} {
		raw, err := proto.Marshal(r)
		must.Do(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		rows := &stagepb.Rows{}
		if proto.Unmarshal(raw, rows) != nil {
			return
		}
		if b, err := DecodeBatch(rows); err == nil {
			again, err := EncodeBatch(b, everything)
			if err != nil {
				t.Fatalf("a decoded batch cannot be encoded: %v", err)
			}
			if _, err := DecodeBatch(again); err != nil {
				t.Fatalf("an encoded batch cannot be decoded: %v", err)
			}
		}
		n := min(int(rows.N), 1<<16)
		_, _ = DecodeEntries(rows, n)
		_, _ = DecodeCandidates(rows, n)
		_, _ = DecodeSamples(rows, n)
		_, _ = DecodePrompts(rows, n)
		candidates := make([]int, n)
		for i := range candidates {
			candidates[i] = 3
		}
		if lists, err := DecodeRankings(rows, candidates); err == nil {
			again, err := DecodeRankings(EncodeRankings(lists), candidates)
			if diff := cmp.Diff(lists, again, same); err != nil || diff != "" {
				t.Fatalf("decoded rankings do not survive: %v %s", err, diff)
			}
		}
		documents := make([]sdk.Document, n)
		for i := range documents {
			documents[i].Text = "été 🙂"
		}
		if lists, err := DecodeChunks(rows, documents); err == nil {
			sent, err := EncodeChunks(lists)
			must.Do(t, err)
			again, err := DecodeChunks(sent, documents)
			if diff := cmp.Diff(lists, again, same); err != nil || diff != "" {
				t.Fatalf("decoded chunks do not survive: %v %s", err, diff)
			}
		}
		_, _ = DecodeDocuments(rows)
		_, _ = DecodeVerdicts(rows, n)
		_, _ = DecodeVectors(rows, n, int(rows.Dimension))
		_, _, _ = DecodeSearch(&stagepb.SearchRequest{Mode: 1, Fusion: 1, Queries: rows})
	})
}

// If a plugin needs a newer racflow, the error says so in a sentence.
func TestLeastMinor(t *testing.T) {
	reply := EncodePlugin(sdk.Plugin{Name: "acme", Version: "1.2.3"})
	reply.Minor, reply.LeastMinor = Minor+3, Minor // newer, but also works with this one
	if _, err := DecodePlugin(reply); err != nil {
		t.Error(err)
	}
	reply.LeastMinor = Minor + 1
	want := fmt.Sprintf("plugin acme 1.2.3 needs version 2.%d of the protocol, and this racflow speaks 2.%d: update racflow, or take an older release of the plugin", Minor+1, Minor)
	if _, err := DecodePlugin(reply); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
