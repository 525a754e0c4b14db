package packet_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// neighbours is a batch as a pipeline gives it that searches labelled texts and votes by them:
// 40 candidates, and a share for each of some labels; or, without an election, passages.
func neighbours(n, labels int, passages bool) ([]source.Row, run.Answers) {
	f := rand.New(rand.NewPCG(1, 1))
	rows, a := make([]source.Row, n), run.Answers{Distributions: []string{"knn"}, Times: []outcome.StageTime{{Stage: "retrieve.intents", Rows: n, Busy: time.Second}}}
	prose := func(length int) (text string) {
		for len(text) < length {
			text += fmt.Sprintf("%s%d ", words[f.IntN(4)], f.IntN(500))
		}
		return text[:length]
	}
	for i := range rows {
		rows[i] = source.Row{Line: i + 2, ID: fmt.Sprintf("u-%05d", i), Text: prose(50), Label: fmt.Sprintf("label_%d", f.IntN(150))}
		var found []sdk.Candidate
		for range 40 {
			c := sdk.Candidate{ID: fmt.Sprint(f.IntN(15000)), Label: fmt.Sprintf("label_%d", f.IntN(10)), Score: f.Float32(), Dense: f.Float32(), Lexical: 20 * f.Float32()}
			if passages {
				c.Text, c.Meta = prose(1000), sdk.Meta{"path": "docs/guide.md", "first_line": float64(f.IntN(1000))}
			}
			found = append(found, c)
		}
		r := outcome.Result{Line: i + 2, ID: rows[i].ID, Text: rows[i].Text, Expected: rows[i].Label, RetrievalOnly: passages, Candidates: found, Latency: time.Duration(f.Int64N(1e9))}
		r.Lists = []outcome.List{{Stage: "retrieve.intents", Candidates: found}}
		if r.Votes = []outcome.Vote{}; !passages {
			r.Answer, r.Agreement, r.Confidence, r.Flagged = rows[i].Label, f.Float64(), f.Float64(), i%10 == 0
			for k := range labels {
				r.Votes = append(r.Votes, outcome.Vote{Voter: "knn", Answer: fmt.Sprintf("label_%d", k), Weight: f.Float64() / float64(k+2), Accepted: true})
			}
			slices.SortFunc(r.Votes, func(a, b outcome.Vote) int { return cmp.Compare(b.Weight, a.Weight) })
		}
		a.Results = append(a.Results, r)
	}
	return rows, a
}

var kinds = []struct {
	name     string
	labels   int
	passages bool
	trim     bool
	keep     journal.Keep
}{
	{"knn", 10, false, true, journal.KeepNotable},
	{"knn, all is kept", 10, false, true, journal.KeepAll},
	{"knn, with lists", 10, false, false, ""},
	{"150 labels", 150, false, true, journal.KeepNotable},
	{"150 labels, with lists", 150, false, false, ""},
	{"passages", 0, true, true, journal.KeepNotable},
}

func BenchmarkEncode(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			rows, a := neighbours(64, k.labels, k.passages)
			size := 0
			b.ReportAllocs()
			for b.Loop() {
				from := a
				if k.trim {
					from = packet.Trim(a, k.keep, false)
				}
				data, err := packet.EncodeAnswers(rows, from)
				if err != nil {
					b.Fatal(err)
				}
				size = len(data)
			}
			b.ReportMetric(float64(size)/64, "bytes/item")
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			rows, a := neighbours(64, k.labels, k.passages)
			if k.trim {
				a = packet.Trim(a, k.keep, false)
			}
			data, err := packet.EncodeAnswers(rows, a)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := packet.DecodeAnswers(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOrder(b *testing.B) {
	rows, _ := neighbours(64, 10, false)
	size := 0
	for b.Loop() {
		data, err := packet.EncodeOrder(run.Order{Rows: rows})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := packet.DecodeOrder(data); err != nil {
			b.Fatal(err)
		}
		size = len(data)
	}
	b.ReportMetric(float64(size)/64, "bytes/item")
}
