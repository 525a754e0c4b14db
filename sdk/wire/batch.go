package wire

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodeBatch converts a batch into rows, with the columns that a stage reads.
func EncodeBatch(b sdk.Batch, reads sdk.Columns) (*stagepb.Rows, error) {
	items := b.Items
	n := len(items)
	rows := &stagepb.Rows{N: uint32(n), Id: make([]string, n)}
	for i := range items {
		rows.Id[i] = Valid(items[i].ID)
	}
	var err error
	if reads.Has(sdk.ColumnText) {
		// The column is present even if all texts are empty, so that a plugin may rely on it.
		rows.Text = make([]string, n)
		for i := range items {
			rows.Text[i] = Valid(items[i].Text)
		}
	}
	if reads.Has(sdk.ColumnMeta) {
		if rows.Meta, err = metas(items, func(it *sdk.Item) sdk.Meta { return it.Meta }); err != nil {
			return nil, err
		}
	}
	if reads.Has(sdk.ColumnVector) {
		vector := func(i int) []float32 { return items[i].Vector }
		if err := packVectors(rows, widest(n, vector), vector); err != nil {
			return nil, err
		}
	}
	if texts := reads.Has(sdk.ColumnCandidateTexts); texts || reads.Has(sdk.ColumnCandidates) {
		rows.Candidates, err = packCandidates(n, func(i int) []sdk.Candidate { return items[i].Candidates }, texts)
		if err != nil {
			return nil, err
		}
	}
	if reads.Has(sdk.ColumnPrototypes) {
		rows.Prototypes = packPrototypes(n, func(i int) []sdk.Candidate { return items[i].Prototypes })
	}
	if reads.Has(sdk.ColumnRandom) {
		rows.Random, err = packCandidates(n, func(i int) []sdk.Candidate { return items[i].Random }, true)
		if err != nil {
			return nil, err
		}
	}
	if reads.Has(sdk.ColumnLabels) {
		rows.Labels, rows.Described = ValidAll(b.Labels), packDescribed(b.Described)
	}
	if reads.Has(sdk.ColumnPrompts) {
		rows.Prompts = packPrompts(n, func(i int) []sdk.Prompt { return items[i].Prompts })
	}
	if reads.Has(sdk.ColumnSamples) {
		rows.Samples = packSamples(n, func(i int) []sdk.Sample { return items[i].Samples })
	}
	rows.Rejected = packRejected(items)
	for i := range items {
		set(&rows.Drawn, i, n, uint32(max(items[i].Drawn, 0)))
	}
	return rows, nil
}

// DecodeBatch returns the batch in rows.
func DecodeBatch(rows *stagepb.Rows) (sdk.Batch, error) {
	n := len(rows.GetId())
	if err := cmp.Or(
		whole("id", n, int(rows.GetN())),
		optional("text", len(rows.GetText()), n),
		optional("meta", len(rows.GetMeta()), n),
		optional("drawn", len(rows.GetDrawn()), n),
	); err != nil {
		return sdk.Batch{}, err
	}
	vectors, err := unpackVectors(rows)
	if err != nil {
		return sdk.Batch{}, err
	}
	var lists [3][][]sdk.Candidate
	for i, c := range []struct {
		name string
		in   *stagepb.Candidates
	}{{"candidates", rows.GetCandidates()}, {"prototypes", rows.GetPrototypes()}, {"random", rows.GetRandom()}} {
		if lists[i], err = unpackCandidates(c.name, c.in, n); err != nil {
			return sdk.Batch{}, err
		}
	}
	prompts, err := unpackPrompts(rows.GetPrompts(), n)
	if err != nil {
		return sdk.Batch{}, err
	}
	samples, err := unpackSamples(rows.GetSamples(), n)
	if err != nil {
		return sdk.Batch{}, err
	}
	rejected, err := unpackRejected(rows.GetRejected(), n)
	if err != nil {
		return sdk.Batch{}, err
	}
	items := make([]sdk.Item, n)
	for i := range items {
		meta, err := decodeMeta(at(rows.GetMeta(), i))
		if err != nil {
			return sdk.Batch{}, fmt.Errorf("row %d: %w", i, err)
		}
		items[i] = sdk.Item{
			ID: rows.Id[i], Text: at(rows.GetText(), i), Meta: meta, Vector: at(vectors, i),
			Candidates: lists[0][i], Prototypes: lists[1][i], Random: lists[2][i],
			Prompts: prompts[i], Samples: samples[i], Drawn: int(at(rows.GetDrawn(), i)), Rejected: rejected[i],
		}
	}
	return sdk.Batch{Items: items, Labels: rows.GetLabels(), Described: unpackDescribed(rows.GetDescribed())}, nil
}

func packDescribed(all map[string]sdk.Described) []*stagepb.Described {
	var out []*stagepb.Described
	for _, label := range slices.Sorted(maps.Keys(all)) {
		d := all[label]
		out = append(out, &stagepb.Described{Label: Valid(label), Name: Valid(d.Name), Text: Valid(d.Text), Alone: d.Alone})
	}
	return out
}

func unpackDescribed(in []*stagepb.Described) map[string]sdk.Described {
	if len(in) == 0 {
		return nil
	}
	all := make(map[string]sdk.Described, len(in))
	for _, d := range in {
		all[d.GetLabel()] = sdk.Described{Name: d.GetName(), Text: d.GetText(), Alone: d.GetAlone()}
	}
	return all
}

// Bounds on the contents of a reply, in addition to MaxMessage. They are far beyond any useful
// content. Without them, a message of MaxMessage bytes could take a hundred times as much memory: a
// sample without content takes one byte in a message.
const (
	// MaxElements bounds the elements of one column of lists, over all rows of a message: answers,
	// chunks, ranks, terms.
	MaxElements = 4 << 20
	// MaxRecords bounds elements that are large in memory: samples, candidates, prompts, entries.
	MaxRecords = 1 << 20
	// MaxSamples bounds the samples of an item, and MaxAnswers the answers of a sample: a distribution
	// has an answer for each label.
	MaxSamples = 10_000
	MaxAnswers = 100_000
	// MaxText bounds each text of a sample or verdict, in bytes: an answer, a reason, what a
	// model wrote.
	MaxText = 4 << 20
	// MaxMeta bounds the metadata of an entry, chunk or document, in bytes of JSON.
	MaxMeta = 4 << 20
	// MaxErrorText bounds the text of an error, in bytes; longer texts are cut.
	MaxErrorText = 16 << 10
)

// few checks that the number of elements in a message is at most a bound.
func few(name string, n, most int) error {
	if n > most {
		return fmt.Errorf("column %s has %d elements; a message has at most %d of them: use smaller batches, or return less for each row", name, n, most)
	}
	return nil
}

// Cut cuts the text of an error to MaxErrorText bytes.
func Cut(text string) string {
	if len(text) <= MaxErrorText {
		return text
	}
	cut := MaxErrorText
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes in all)", text[:cut], len(text))
}

// checkAmount checks that there are at most MaxSamples samples with at most MaxAnswers answers each,
// and that no text has more than MaxText bytes.
func checkAmount(list []sdk.Sample) error {
	if len(list) > MaxSamples {
		return fmt.Errorf("%d samples for an item; there are at most %d", len(list), MaxSamples)
	}
	for i := range list {
		s := &list[i]
		if n := len(s.Answers); n > MaxAnswers {
			return fmt.Errorf("%d answers in sample %d; a sample has at most %d", n, i+1, MaxAnswers)
		}
		longest := max(len(s.Text), len(s.Voter), len(s.Model))
		for _, a := range s.Answers {
			longest = max(longest, len(a.Label), len(a.Reason), len(a.Reading), len(a.Explanation))
		}
		if err := checkText(longest); err != nil {
			return fmt.Errorf("%w (sample %d)", err, i+1)
		}
	}
	return nil
}

func checkText(bytes int) error {
	if bytes > MaxText {
		return fmt.Errorf("a text of %d bytes; a text has at most %d", bytes, MaxText)
	}
	return nil
}

// EncodeTraining converts training rows into rows, with the columns that a stage wants.
func EncodeTraining(rows []sdk.TrainingRow, reads sdk.Columns) (*stagepb.Rows, error) {
	items := make([]sdk.Item, len(rows))
	for i, r := range rows {
		items[i] = sdk.Item{ID: r.ID, Text: r.Text, Vector: r.Vector, Samples: r.Samples}
	}
	out, err := EncodeBatch(sdk.Batch{Items: items}, reads)
	if err != nil {
		return nil, err
	}
	for i, r := range rows {
		set(&out.Label, i, len(rows), Valid(r.Label))
		set(&out.Description, i, len(rows), r.Description)
		set(&out.HeldOut, i, len(rows), r.HeldOut)
	}
	return out, nil
}

// DecodeTraining returns the training rows in rows.
func DecodeTraining(rows *stagepb.Rows) ([]sdk.TrainingRow, error) {
	b, err := DecodeBatch(rows)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(
		optional("label", len(rows.GetLabel()), len(b.Items)),
		optional("held_out", len(rows.GetHeldOut()), len(b.Items)),
		optional("description", len(rows.GetDescription()), len(b.Items)),
	); err != nil {
		return nil, err
	}
	out := make([]sdk.TrainingRow, len(b.Items))
	for i, it := range b.Items {
		out[i] = sdk.TrainingRow{ID: it.ID, Text: it.Text, Label: at(rows.GetLabel(), i), Vector: it.Vector, Samples: it.Samples, HeldOut: at(rows.GetHeldOut(), i), Description: at(rows.GetDescription(), i)}
	}
	return out, nil
}

// EncodeRankings converts lists of ranked candidates into rows.
func EncodeRankings(lists [][]sdk.Ranked) *stagepb.Rows {
	total := 0
	for _, list := range lists {
		total += len(list)
	}
	out := &stagepb.Rankings{
		Offsets: make([]uint32, 1, len(lists)+1), Candidate: make([]uint32, 0, total), Score: make([]float32, 0, total),
	}
	for _, list := range lists {
		for _, r := range list {
			// A negative index becomes one that no candidate has, so that the receiver reports it.
			out.Candidate = append(out.Candidate, uint32(min(uint64(r.Candidate), math.MaxUint32)))
			out.Score = append(out.Score, r.Score)
		}
		out.Offsets = append(out.Offsets, uint32(len(out.Candidate)))
	}
	return &stagepb.Rows{N: uint32(len(lists)), Rankings: out}
}

// DecodeRankings returns the lists of ranked candidates in rows. Row i had candidates[i] candidates.
func DecodeRankings(rows *stagepb.Rows, candidates []int) ([][]sdk.Ranked, error) {
	n, in := len(candidates), rows.GetRankings()
	if n > 0 && in == nil {
		return nil, fmt.Errorf("column rankings is missing")
	}
	if err := cmp.Or(
		whole("rankings", int(rows.GetN()), n),
		spans("rankings", in.GetOffsets(), n, len(in.GetCandidate())),
		whole("rankings.score", len(in.GetScore()), len(in.GetCandidate())),
	); err != nil {
		return nil, err
	}
	all := make([]sdk.Ranked, len(in.GetCandidate()))
	lists := make([][]sdk.Ranked, n)
	for i := range lists {
		lo, hi := in.Offsets[i], in.Offsets[i+1]
		seen := make([]bool, candidates[i])
		for j := lo; j < hi; j++ {
			c, score := in.Candidate[j], in.Score[j]
			switch {
			case uint64(c) >= uint64(len(seen)):
				return nil, fmt.Errorf("column rankings: candidate %d of %d in row %d", c, len(seen), i)
			case seen[c]:
				return nil, fmt.Errorf("column rankings: candidate %d stands twice in row %d", c, i)
			}
			seen[c] = true
			all[j] = sdk.Ranked{Candidate: int(c), Score: score}
		}
		lists[i] = all[lo:hi:hi]
	}
	return lists, nil
}

// packRejected makes a column of the answers that were not accepted; nil if there are none.
func packRejected(items []sdk.Item) *stagepb.Rejected {
	var out stagepb.Rejected
	out.Offsets = make([]uint32, 1, len(items)+1)
	for i := range items {
		for _, r := range items[i].Rejected {
			out.Text = append(out.Text, Valid(r.Text))
			out.Reason = append(out.Reason, Valid(r.Reason))
		}
		out.Offsets = append(out.Offsets, uint32(len(out.Text)))
	}
	if len(out.Text) == 0 {
		return nil
	}
	return &out
}

func unpackRejected(in *stagepb.Rejected, n int) ([][]sdk.Rejection, error) {
	lists := make([][]sdk.Rejection, n)
	if in == nil {
		return lists, nil
	}
	total := len(in.Text)
	if err := spans("rejected", in.Offsets, n, total); err != nil {
		return nil, err
	}
	if err := optional("rejected.reason", len(in.Reason), total); err != nil {
		return nil, err
	}
	for i := range lists {
		for k := in.Offsets[i]; k < in.Offsets[i+1]; k++ {
			lists[i] = append(lists[i], sdk.Rejection{Text: in.Text[k], Reason: at(in.Reason, int(k))})
		}
	}
	return lists, nil
}
