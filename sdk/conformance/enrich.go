package conformance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// texts are the inputs that break embedders.
var texts = []string{
	"I lost my card yesterday", "what is the weather like", "", "   \t\n", "Größe, naïveté, Ελληνικά, 中文分词, 🙂",
	"caf\xe9 is not UTF-8", "\x00 a zero byte", strings.Repeat("a long text ", 2000), strings.Repeat("x", 5000), "I lost my card yesterday",
}

var embedChecks = []Check{
	{Name: "one vector per text", Within: Long,
		Why: "Vectors are matched with texts by their place, also those of empty and odd texts.",
		Fix: "Return a vector for each text, in their order; a text with nothing to embed has one of zeros.",
		Run: opened(func(ctx context.Context, e *wire.Stage, _ sdk.Stage) error {
			for _, role := range []sdk.Role{sdk.RolePassage, sdk.RoleQuery} {
				if _, err := embedded(e.Embed(ctx, role, texts)); err != nil {
					return err
				}
			}
			empty, err := e.Embed(ctx, sdk.RoleQuery, nil)
			if err != nil || len(empty) != 0 {
				return fmt.Errorf("an empty batch gave %d vectors, %v", len(empty), err)
			}
			return nil
		})},
	{Name: "vectors are finite and of norm 1", Within: Long,
		Why: "Stores compare vectors by their product, which is the cosine for vectors of norm 1; a number that is not finite spoils the index.",
		Fix: "Divide each vector by its norm, unless that is 0, and look for infinite numbers of half precision.",
		Run: opened(func(ctx context.Context, e *wire.Stage, _ sdk.Stage) error {
			for _, role := range []sdk.Role{sdk.RolePassage, sdk.RoleQuery} {
				// As in the engine, a vector that is neither of norm 1 nor zero is an error.
				if _, err := e.Embed(ctx, role, texts); err != nil {
					return err
				}
			}
			return nil
		})},
	{Name: "same text, same vector", Within: Long,
		Why: "Vectors are kept by their text, and a query has to find the text that it repeats.",
		Fix: "Let a text's vector depend on that text alone, whatever is beside it in the batch.",
		Run: opened(func(ctx context.Context, e *wire.Stage, _ sdk.Stage) error {
			call := func(texts []string) ([][]float32, error) { return e.Embed(ctx, sdk.RolePassage, texts) }
			return sameResults(texts, 0, eachRow(len(texts)), call, func(got, want []float32) string {
				if d := distance(got, want); !(d < 1e-4) {
					return fmt.Sprintf("it is %v away from its vector before", d)
				}
				return ""
			})
		})},
	endsWhenCancelled(
		func() []string {
			many := make([]string, 5000)
			for i := range many {
				many[i] = fmt.Sprintf("utterance number %d about a lost card and the weather", i)
			}
			return many
		},
		func() []string { return []string{"probe"} },
		func(ctx context.Context, e *wire.Stage, _ sdk.Kind, texts []string) error {
			_, err := e.Embed(ctx, sdk.RoleQuery, texts)
			return err
		},
	),
}

// embedded are vectors, whatever their numbers.
func embedded(vectors [][]float32, err error) ([][]float32, error) {
	var failed sdk.RowErrors
	if !errors.As(err, &failed) {
		return vectors, err
	}
	for row, err := range failed {
		if number := new(wire.NumberError); !errors.As(err, &number) {
			return nil, fmt.Errorf("text %d: %w", row, err)
		}
	}
	return vectors, nil
}

func distance(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum)
}

// enrichChecks are those of enrichers. A stage may fail single passages, but
// never all of them because of one.
var enrichChecks = []Check{
	{Name: "one addition per passage", Within: Long,
		Why: "Additions are matched with passages by their place; a passage that cannot be worked on fails alone.",
		Fix: "Return as many additions as there are passages, in their order, and row errors for those that fail.",
		Run: opened(func(ctx context.Context, e *wire.Stage, _ sdk.Stage) error {
			all := passages()
			for _, batch := range [][]sdk.Passage{nil, of(all, "one.txt"), of(all, "notes.md"), all} {
				if _, err := flatten(e.Enrich(ctx, batch)); err != nil {
					return fmt.Errorf("batch of %d: %w", len(batch), err)
				}
			}
			return withoutPassages(ctx, e)
		})},
	{Name: "same document, same additions", Within: Long,
		Why: "A build enriches changed documents alone; other additions to an unchanged one would be paid for again.",
		Fix: "Let a document's additions depend on that document alone.",
		Run: own(func(ctx context.Context, e *wire.Stage, _ sdk.Stage) error {
			all := passages()
			call := func(passages []sdk.Passage) ([]string, error) { return flatten(e.Enrich(ctx, passages)) }
			if err := sameResults(all, 4, byDocument(all), call, equal); err != nil {
				return fmt.Errorf("other additions: %w", err)
			}
			want, err := call(all)
			if err != nil {
				return err
			}
			got, err := call(backwards(all, all))
			for i, w := range backwards(all, want) {
				if err == nil && got[i] != w {
					err = fmt.Errorf("documents in another order have other additions: %s", equal(got[i], w))
				}
			}
			return err
		})},
	endsWhenCancelled(
		func() []sdk.Passage {
			var many []sdk.Passage
			for i := range 100 {
				d := sdk.Document{ID: fmt.Sprint(i), Text: strings.Repeat("A sentence about a lost card.\n\n", 500)}
				many = append(many, windows(&d, 1000)...)
			}
			return many
		},
		func() []sdk.Passage { return nil },
		func(ctx context.Context, e *wire.Stage, _ sdk.Kind, p []sdk.Passage) error {
			_, err := e.Enrich(ctx, p)
			return err
		},
	),
}

// withoutPassages checks that documents may come with an empty list of passages.
func withoutPassages(ctx context.Context, e *wire.Stage) error {
	rows, err := wire.EncodeDocuments(documents()[:3])
	if err != nil {
		return err
	}
	rows.Chunks = &stagepb.Chunks{Offsets: make([]uint32, rows.N+1)}
	reply := &stagepb.RowsReply{}
	err = e.Conn.Invoke(ctx, stagepb.Stage_Enrich_FullMethodName, &stagepb.EnrichRequest{Rows: rows}, reply)
	if err == nil && reply.GetFailure() != nil {
		err = wire.DecodeFailure(reply.GetFailure())
	}
	if err == nil {
		_, err = wire.DecodeAdditions(reply.GetRows(), 0)
	}
	if err != nil {
		return fmt.Errorf("documents without passages: %w", err)
	}
	return nil
}

// passages are those of the documents that break chunkers, long ones shortened:
// a document as one passage, or windows that overlap.
func passages() []sdk.Passage {
	const most, width = 600, 60
	var all []sdk.Passage
	for i, d := range documents() {
		if text := []rune(d.Text); len(text) > most {
			d.Text = string(text[:most])
		}
		switch {
		case strings.TrimSpace(d.Text) == "": // it has none
		case i%5 == 0:
			all = append(all, sdk.Passage{Document: &d, Chunk: sdk.Chunk{End: len(d.Text)}})
		default:
			all = append(all, windows(&d, width)...)
		}
	}
	twin := *all[0].Document
	twin.ID, twin.Meta = "twin of "+twin.ID, nil
	return append(all, sdk.Passage{Document: &twin, Chunk: sdk.Chunk{End: len(twin.Text)}})
}

// windows cuts a document every width characters into passages that reach a
// tenth of that into the next.
func windows(d *sdk.Document, width int) []sdk.Passage {
	var all []sdk.Passage
	starts := make([]int, 0, len(d.Text)+1)
	for at := range d.Text {
		starts = append(starts, at)
	}
	starts = append(starts, len(d.Text))
	for lo := 0; lo < len(starts)-1; lo += width {
		c := sdk.Chunk{Start: starts[lo], End: starts[min(lo+width+width/10, len(starts)-1)], Meta: sdk.Meta{"headings": "Cards / Fees"}}
		if strings.TrimSpace(d.Text[c.Start:c.End]) != "" {
			all = append(all, sdk.Passage{Document: d, Chunk: c})
		}
	}
	return all
}

// of returns the passages of one document.
func of(all []sdk.Passage, id string) []sdk.Passage {
	return slices.DeleteFunc(slices.Clone(all), func(p sdk.Passage) bool { return p.Document.ID != id })
}

// byDocument yields where the passages of each document begin and end.
func byDocument(all []sdk.Passage) iter.Seq2[int, int] {
	return func(yield func(lo, hi int) bool) {
		for lo, hi := 0, 0; lo < len(all); lo = hi {
			for hi < len(all) && all[hi].Document == all[lo].Document {
				hi++
			}
			if !yield(lo, hi) {
				return
			}
		}
	}
}

// backwards returns values that belong to passages with their documents in the
// opposite order.
func backwards[T any](all []sdk.Passage, values []T) []T {
	var parts [][]T
	for lo, hi := range byDocument(all) {
		parts = append(parts, values[lo:hi])
	}
	slices.Reverse(parts)
	return slices.Concat(parts...)
}

// fit fits a stage, in two batches, and returns the folder with what it has learnt.
func fit(t T, s *wire.Stage, stage sdk.Stage) (string, error) {
	rows := trainingRows()
	err := s.Fit(t.Context(), func(yield func([]sdk.TrainingRow, error) bool) {
		_ = yield(rows[:7], nil) && yield(rows[7:], nil)
	})
	if err != nil {
		return "", fmt.Errorf("fit: %w", err)
	}
	if stage.Kind == sdk.KindEmbed {
		state, err := s.State()
		if err != nil {
			return "", err
		}
		return wire.StateDir(t.TempDir(), state)
	}
	files, err := os.ReadDir(s.StateDir)
	if err == nil && len(files) == 0 {
		err = errors.New("fit has written nothing into the state_dir")
	}
	return s.StateDir, err
}

// trainingRows have all that a stage may learn from: labels that texts, vectors and votes
// tell apart. Some have no label, no text that is one, or no votes.
func trainingRows() []sdk.TrainingRow {
	b := items(30)
	rows := make([]sdk.TrainingRow, len(b.Items))
	for i, it := range b.Items {
		label := i % len(b.Labels)
		rows[i] = sdk.TrainingRow{ID: it.ID, Label: b.Labels[label], Text: it.Text + " " + b.Labels[label], Vector: make([]float32, 3), Samples: slices.Clone(it.Samples)}
		rows[i].Vector[label] = 1
	}
	rows[4].Label = ""
	return rows
}

// carriedOver checks that a later process does what the one does that was fitted. One that
// was not fitted works, too: what it lacks fails rows at most.
var carriedOver = Check{
	Name: "what was learnt is carried over", Within: Longest,
	Why: "A stage is fitted once; every later process works by what is in its state_dir.",
	Fix: "Write all that Fit learns into state_dir, and read it when the stage opens.",
	Run: func(t T, s *Subject) error {
		setup := s.Setup(t)
		first, err := s.Open(t, setup)
		if err != nil || !first.Stage.Fits() {
			return err
		}
		ctx, kind := t.Context(), s.Stage.Kind
		if _, err := outputs(ctx, first.Stage, kind); err != nil {
			return fmt.Errorf("before it was fitted: %w", err)
		}
		if setup.StateDir, err = fit(t, first.Stage, s.Stage); err != nil {
			return err
		}
		want, err := outputs(ctx, first.Stage, kind)
		if err != nil {
			return fmt.Errorf("after it was fitted: %w", err)
		}
		later, err := s.Open(t, setup)
		if err != nil {
			return fmt.Errorf("with what was learnt: %w", err)
		}
		got, err := outputs(ctx, later.Stage, kind)
		for i := range got {
			if d := equal(got[i], want[i]); err == nil && d != "" && !s.Stage.Network {
				err = fmt.Errorf("row %d in a later process: %s", i, d)
			}
		}
		return err
	},
}

// outputs are what a stage that may be fitted does with a few rows.
func outputs(ctx context.Context, s *wire.Stage, kind sdk.Kind) ([]string, error) {
	if kind == sdk.KindEmbed {
		return flatten(s.Embed(ctx, sdk.RolePassage, texts))
	}
	return results(ctx, s, kind, items(9))
}
