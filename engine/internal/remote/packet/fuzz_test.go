package packet

import (
	"encoding/json"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

var exampleRows = []source.Row{
	source.Row{Line: 7, ID: "a", Text: "one", Label: "x", Meta: sdk.Meta{"n": 1.5, "s": "t", "b": true}, Gold: []source.Gold{{IDs: []string{"p"}, Quote: "q", Grade: 2}}}.At("in/a.tsv", 3),
	{Line: 8, Text: "two", Fields: []source.Field{{Name: "n", Value: json.Number("1e5")}, {Name: "j", Value: json.RawMessage(`{"a":1}`)}, {Name: "x", Value: "a\xff"}}},
}

// plain has a packet of a fuzzer's content.
func plain(k kind, data []byte, bare bool) []byte {
	if !bare {
		return data
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil
	}
	return z.EncodeAll(data, []byte{Version, byte(k)})
}

// fuzz reads anything as a packet of a kind, beginning with an example and its content. What can be read can be
// written, and read again.
func fuzz[T any](f *testing.F, k kind, example T, encode func(T) ([]byte, error), decode func([]byte) (T, error)) {
	f.Helper()
	data, err := encode(example)
	if err != nil {
		f.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		f.Fatal(err)
	}
	defer z.Close()
	content, err := z.DecodeAll(data[2:], nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, false)
	f.Add(content, true)
	f.Fuzz(func(t *testing.T, data []byte, bare bool) {
		read, err := decode(plain(k, data, bare))
		if err != nil {
			return
		}
		again, err := encode(read)
		if err != nil {
			t.Fatal(err)
		}
		if read, err = decode(again); err != nil {
			t.Fatal(err)
		}
		if third, err := encode(read); err != nil || string(third) != string(again) {
			t.Fatalf("written twice, it is another one: %v", err)
		}
	})
}

func FuzzDecodeOrder(f *testing.F) {
	fuzz(f, orders, run.Order{Rows: exampleRows, Pass: run.Survey}, EncodeOrder, DecodeOrder)
}

func FuzzDecodeAnswers(f *testing.F) {
	found := []sdk.Candidate{{ID: "c", Text: "t", Score: 1, Dense: sdk.Unscored, Meta: sdk.Meta{"path": "a.md"}}}
	r := outcome.Result{Line: 7, ID: "a", Text: "one"}
	r.Answer, r.Agreement, r.Candidates, r.Lists = "x", .5, found, []outcome.List{{Stage: "retrieve.a", Candidates: found}}
	r.Votes = []outcome.Vote{{Voter: "knn", Answer: "x", Weight: .5, Accepted: true}, {Voter: "llm", Answer: "y", Weight: 1, Reason: "why"}}
	r.Citations, r.Requests = []outcome.Citation{{Number: 2, Passage: found[0]}}, []outcome.Request{{Voter: "llm", Key: sdk.Key{1}}}
	r.Rules, r.Retries = []outcome.Rule{{Stage: "s", Rule: "keep", N: 1, Of: 2}}, []outcome.Retry{{Stage: "s", Why: "w", Times: 2}}
	r.Usages, r.Costs, r.Usage = map[string]sdk.Usage{"llm": {InputTokens: 1}}, map[string]float64{"llm": .5}, sdk.Usage{InputTokens: 1}
	r.Missing, r.Unasked = []*outcome.Failure{{Stage: "sample.b", Err: sdk.Refused(errFuzz)}}, &outcome.Bill{Calls: 1, Cost: 2}
	type packet struct {
		rows    []source.Row
		answers run.Answers
	}
	fuzz(f, answers, packet{exampleRows, run.Answers{
		Results: []outcome.Result{r, {}}, Left: map[int]error{1: errFuzz}, Bills: map[int]outcome.Bill{0: {Calls: 1}},
		Halted: r.Missing, Ended: errFuzz, Distributions: []string{"knn"}, Times: []outcome.StageTime{{Stage: "s", Rows: 1, Busy: 2}},
	}}, func(p packet) ([]byte, error) { return EncodeAnswers(p.rows, p.answers) }, func(data []byte) (packet, error) {
		rows, a, err := DecodeAnswers(data)
		return packet{rows, a}, err
	})
}

var errFuzz = &outcome.Failure{Stage: "sample.llm", Err: sdk.Transient(sdk.ErrCrashed, 5)}
