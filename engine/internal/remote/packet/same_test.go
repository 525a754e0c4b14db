package packet_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/run/journal"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// outputs are what the formats make of results, with the usual columns and with all.
func outputs(t *testing.T, rows []source.Row, results []outcome.Result) map[string]string {
	t.Helper()
	all := map[string]string{}
	var input result.Input
	for _, row := range rows {
		input.Add(row)
	}
	every := []string{"id", "text", "expected", "answer", "agreement", "confidence", "unknown", "runner_up", "flagged", "reason", "error", "citations", "candidates", "missing", "decided", "votes", "fields"}
	for _, format := range result.Formats {
		for name, columns := range map[string][]string{"": nil, " with all columns": every} {
			var out bytes.Buffer
			w := must.Get(result.NewWriter(&out, format, result.Options{Columns: columns, Input: input}))(t)
			for _, r := range results {
				if err := w.Write(r); err != nil {
					fmt.Fprintln(&out, "error:", err) // of a number that is none, in both cases
				}
			}
			if err := w.Close(); err != nil {
				fmt.Fprintln(&out, "error:", err)
			}
			all[format+name] = out.String()
		}
	}
	for i, r := range results {
		text, err := json.Marshal(result.Of(r, func(voter string, u sdk.Usage) float64 { return float64(len(voter)) + float64(u.OutputTokens) }))
		all[fmt.Sprintf("result %d", i)] = fmt.Sprint(string(text), err, result.Of(r, nil).Usage)
	}
	return all
}

// kept are the files of a journal that is given results.
func kept(t *testing.T, results []outcome.Result, keep journal.Keep) map[string]string {
	t.Helper()
	dir := t.TempDir()
	j := must.Get(journal.Create(dir, journal.Manifest{ID: "a", Format: 1}, journal.Options{Keep: keep}))(t)
	for i := range results { // one that cannot be kept does not hide the others
		_ = j.Keep(results[i : i+1])
	}
	must.Do(t, j.Close(nil))
	all := map[string]string{}
	for _, name := range []string{journal.File, "failures.jsonl", "provisional.jsonl"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		all[fmt.Sprintf("%s with %q", name, keep)] = string(text)
	}
	return all
}

// reports are what a run says of its results at the end, and what is spent on them.
func reports(t *testing.T, results []outcome.Result) map[string]string {
	t.Helper()
	totals, counter, sure := outcome.Totals{Distributions: []string{"knn"}}, eval.NewCounter("a", "b"), eval.NewConfidences("a", "b")
	spender := spend.New(spend.Options{Cost: func(voter string, u sdk.Usage) float64 { return float64(u.InputTokens) }})
	for _, r := range results {
		totals.Add(r)
		counter.Add(r)
		sure.Add(r)
	}
	must.Do(t, spender.Counting().Keep(results))
	book := &memory{}
	must.Do(t, spender.Survey(book).Keep(results))
	return map[string]string{
		"totals": told(totals), "dropped": told(totals.Dropped()), "evaluation": told(counter.Report(totals)), "spent": told(spender.Report()),
		"survey": told(book.results),
	}
}

type memory struct{ results []outcome.Result }

func (*memory) Answered(source.Row) (outcome.Result, bool) { return outcome.Result{}, false }
func (m *memory) Keep(results []outcome.Result) error {
	m.results = append(m.results, results...)
	return nil
}

func alike(t *testing.T, what string, want, got map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			a, b := []byte(text), []byte(got[name])
			at := 0
			for at < min(len(a), len(b)) && a[at] == b[at] {
				at++
			}
			from := max(0, at-60)
			t.Fatalf("%s: %s differs\nwant ...%q\n got ...%q", what, name, a[from:min(len(a), at+60)], b[from:min(len(b), at+60)])
		}
	}
}

// TestSame writes random results, and the same after they have travelled, in all formats, keeps
// them in journals, and counts them.
func TestSame(t *testing.T) {
	lines, longest := 0, 0
	for seed := range uint64(40) {
		f := &filler{Rand: rand.New(rand.NewPCG(seed, 3)), full: seed%4 == 0, finite: seed%2 == 0}
		rows, a := f.batch(1 + f.IntN(8))
		for i := range a.Results {
			f.likely(&a.Results[i])
		}
		gotRows, got := sent(t, rows, a)
		what := fmt.Sprintf("seed %d", seed)
		alike(t, what, outputs(t, rows, a.Results), outputs(t, gotRows, got.Results))
		stay := func(all []outcome.Result) (some []outcome.Result) { // without those that are left
			for i, r := range all {
				if _, left := a.Left[i]; !left {
					some = append(some, r)
				}
			}
			return some
		}
		present, arrived := stay(a.Results), stay(got.Results)
		alike(t, what, reports(t, hashedResults(present)), reports(t, arrived))
		for _, keep := range []journal.Keep{journal.KeepAll, journal.KeepNotable} {
			want := kept(t, present, keep)
			alike(t, what, want, kept(t, arrived, keep))
			for _, text := range want {
				lines += bytes.Count([]byte(text), []byte("\n"))
				longest = max(longest, len(text))
			}
			// What is dropped before it travels makes no difference either.
			_, trimmed := sent(t, rows, packet.Trim(a, keep, false))
			alike(t, what+", trimmed", outputs(t, rows, a.Results), outputs(t, gotRows, trimmed.Results))
			small := stay(trimmed.Results)
			alike(t, what+", trimmed", want, kept(t, small, keep))
			alike(t, what+", trimmed", without(reports(t, present), "survey"), reports(t, small))
		}
	}
	if lines < 200 || longest < 1000 {
		t.Errorf("journals had %d lines, the longest file %d bytes: that shows little", lines, longest)
	}
}

// likely makes a random result more like one of a run: most have not failed, and votes of a
// voter stand together.
func (f *filler) likely(r *outcome.Result) {
	if f.IntN(3) > 0 {
		r.Failure = nil
	}
	if r.Votes != nil && f.IntN(2) == 0 {
		for i := range 12 { // more than outputs show
			r.Votes = append(r.Votes, outcome.Vote{Voter: "knn", Answer: string(rune('a' + i)), Weight: 1 / float64(2+i), Accepted: i > 6 && i != 9, Reason: []string{"", "", "rare"}[i%3]})
		}
	}
	if f.IntN(2) == 0 {
		r.Flagged, r.Expected, r.RetrievalOnly = false, r.Answer, false // not notable
	}
	if f.IntN(3) == 0 {
		r.Decided = nil
	}
}

func hashedResults(all []outcome.Result) []outcome.Result {
	return hashed(run.Answers{Results: all}).Results
}

func without(all map[string]string, name string) map[string]string {
	delete(all, name)
	return all
}
