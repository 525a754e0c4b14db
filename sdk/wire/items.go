package wire

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodePassages converts the documents of passages into rows, each document once, with its passages
// as its chunks. All passages of a document must follow each other.
func EncodePassages(passages []sdk.Passage) (*stagepb.Rows, error) {
	var documents []sdk.Document
	var lists [][]sdk.Chunk
	sent := map[*sdk.Document]bool{}
	for i, p := range passages {
		switch {
		case p.Document == nil:
			return nil, fmt.Errorf("passage %d has no document", i)
		case i > 0 && p.Document == passages[i-1].Document:
		case sent[p.Document]:
			return nil, fmt.Errorf("passage %d is of document %q, whose other passages stand before those of another one", i, p.Document.ID)
		default:
			sent[p.Document] = true
			documents, lists = append(documents, *p.Document), append(lists, nil)
		}
		last := len(documents) - 1
		lists[last] = append(lists[last], p.Chunk)
	}
	for i := range documents {
		// A source's row need not be UTF-8. If the whole text is one passage, no position in it counts.
		if d, all := &documents[i], lists[i]; len(all) == 1 && all[0].Start == 0 && all[0].End == len(d.Text) {
			d.Text = Valid(d.Text)
			all[0].End = len(d.Text)
		}
	}
	rows, err := EncodeDocuments(documents)
	if err != nil {
		return nil, err
	}
	chunks, err := EncodeChunks(lists)
	if err != nil {
		return nil, err
	}
	rows.Chunks = chunks.Chunks
	return rows, nil
}

// DecodePassages returns the passages in rows of documents; the passages of a document share it.
func DecodePassages(rows *stagepb.Rows) ([]sdk.Passage, error) {
	documents, err := DecodeDocuments(rows)
	if err != nil {
		return nil, err
	}
	lists, err := DecodeChunks(rows, documents)
	if err != nil {
		return nil, err
	}
	passages := make([]sdk.Passage, 0, len(rows.GetChunks().GetStart()))
	for i, list := range lists {
		for _, c := range list {
			passages = append(passages, sdk.Passage{Document: &documents[i], Chunk: c})
		}
	}
	return passages, nil
}

// EncodeAdditions converts additions into rows, one per passage.
func EncodeAdditions(additions []sdk.Addition) *stagepb.Rows {
	rows := &stagepb.Rows{
		N:       uint32(len(additions)),
		Context: column(additions, func(a *sdk.Addition) string { return a.Context }),
	}
	out := &stagepb.Terms{Offsets: make([]uint32, 1, len(additions)+1)}
	for _, a := range additions {
		out.Term = append(out.Term, ValidAll(a.Terms)...)
		out.Offsets = append(out.Offsets, uint32(len(out.Term)))
	}
	if len(out.Term) > 0 {
		rows.Terms = out
	}
	return rows
}

// DecodeAdditions returns the additions to n passages in rows.
func DecodeAdditions(rows *stagepb.Rows, n int) ([]sdk.Addition, error) {
	switch {
	case rows == nil && n > 0:
		return nil, errors.New("there are no rows with additions")
	case uint64(rows.GetN()) != uint64(n):
		return nil, fmt.Errorf("%d additions to %d passages", rows.GetN(), n)
	}
	if err := optional("context", len(rows.GetContext()), n); err != nil {
		return nil, err
	}
	additions := make([]sdk.Addition, n)
	for i := range additions {
		additions[i].Context = at(rows.GetContext(), i)
	}
	in := rows.GetTerms()
	if in == nil {
		return additions, nil
	}
	if err := spans("terms", in.Offsets, n, len(in.Term)); err != nil {
		return nil, err
	}
	for i := range additions {
		if lo, hi := in.Offsets[i], in.Offsets[i+1]; lo < hi {
			additions[i].Terms = in.Term[lo:hi:hi]
		}
	}
	return additions, nil
}

// EncodePrompts converts lists of prompts into rows.
func EncodePrompts(lists [][]sdk.Prompt) *stagepb.Rows {
	return &stagepb.Rows{
		N:       uint32(len(lists)),
		Prompts: packPrompts(len(lists), func(i int) []sdk.Prompt { return lists[i] }),
	}
}

// DecodePrompts returns the n lists of prompts in rows.
func DecodePrompts(rows *stagepb.Rows, n int) ([][]sdk.Prompt, error) {
	if err := whole("prompts", int(rows.GetN()), n); err != nil {
		return nil, err
	}
	if n > 0 && rows.GetPrompts() == nil {
		return nil, fmt.Errorf("column prompts is missing")
	}
	return unpackPrompts(rows.GetPrompts(), n)
}

func packPrompts(n int, list func(int) []sdk.Prompt) *stagepb.Prompts {
	out := &stagepb.Prompts{Offsets: make([]uint32, 1, n+1)}
	chats, allowed := false, false
	for i := range n {
		for _, p := range list(i) {
			chats = chats || len(p.Messages) > 0
			allowed = allowed || len(p.Labels) > 0 || p.None != "" || len(p.Fields) > 0 || p.Passages != nil || p.Levels != ""
		}
	}
	var names dictionary
	for i := range n {
		for _, p := range list(i) {
			out.Text = append(out.Text, Valid(p.Text))
			if chats {
				c := &stagepb.Chat{Messages: make([]*stagepb.Message, len(p.Messages))}
				for j, m := range p.Messages {
					c.Messages[j] = &stagepb.Message{Role: Valid(m.Role), Text: Valid(m.Text), Shared: m.Shared}
				}
				out.Chat = append(out.Chat, c)
			}
			if allowed {
				a := &stagepb.Allowed{Labels: make([]uint32, len(p.Labels)), None: Valid(p.None), Fields: ValidAll(p.Fields), Levels: Valid(p.Levels)}
				for j, label := range p.Labels {
					a.Labels[j] = names.number(label)
				}
				if p.Passages != nil { // an empty list counts: the answer is then a text, too
					a.Passages = &stagepb.Passages{Ids: ValidAll(p.Passages)}
				}
				out.Allowed = append(out.Allowed, a)
			}
		}
		out.Offsets = append(out.Offsets, uint32(len(out.Text)))
	}
	out.Names = names.names
	return out
}

func unpackPrompts(in *stagepb.Prompts, n int) ([][]sdk.Prompt, error) {
	if in == nil {
		return make([][]sdk.Prompt, n), nil
	}
	labels := 0
	for _, a := range in.Allowed {
		labels += len(a.GetLabels())
	}
	if err := cmp.Or(
		few("prompts", len(in.Text), MaxRecords),
		few("prompts.allowed", labels, MaxElements),
		spans("prompts", in.Offsets, n, len(in.Text)),
		optional("prompts.chat", len(in.Chat), len(in.Text)),
		optional("prompts.allowed", len(in.Allowed), len(in.Text)),
	); err != nil {
		return nil, err
	}
	all := make([]sdk.Prompt, len(in.Text))
	for i := range all {
		all[i].Text = in.Text[i]
		for _, m := range at(in.Chat, i).GetMessages() {
			all[i].Messages = append(all[i].Messages, sdk.Message{Role: m.GetRole(), Text: m.GetText(), Shared: m.GetShared()})
		}
		a := at(in.Allowed, i)
		all[i].None, all[i].Fields, all[i].Levels = a.GetNone(), a.GetFields(), a.GetLevels()
		for _, label := range a.GetLabels() {
			if int(label) >= len(in.Names) {
				return nil, fmt.Errorf("column prompts: label %d of %d names", label, len(in.Names))
			}
			all[i].Labels = append(all[i].Labels, in.Names[label])
		}
		if p := a.GetPassages(); p != nil {
			if len(all[i].Labels) > 0 || len(all[i].Fields) > 0 {
				return nil, fmt.Errorf("column prompts: prompt %d has passages, so that its answer is a text, and labels or fields as well", i)
			}
			all[i].Passages = append([]string{}, p.GetIds()...)
		}
	}
	return ragged(all, in.Offsets), nil
}

// EncodeSamples converts lists of samples into rows.
func EncodeSamples(lists [][]sdk.Sample) *stagepb.Rows {
	return &stagepb.Rows{
		N:       uint32(len(lists)),
		Samples: packSamples(len(lists), func(i int) []sdk.Sample { return lists[i] }),
	}
}

// DecodeSamples returns the n lists of samples in rows.
func DecodeSamples(rows *stagepb.Rows, n int) ([][]sdk.Sample, error) {
	if err := whole("samples", int(rows.GetN()), n); err != nil {
		return nil, err
	}
	if n > 0 && rows.GetSamples() == nil {
		return nil, fmt.Errorf("column samples is missing")
	}
	return unpackSamples(rows.GetSamples(), n)
}

func packSamples(n int, list func(int) []sdk.Sample) *stagepb.Samples {
	samples, answers := 0, 0
	for i := range n {
		for _, s := range list(i) {
			samples, answers = samples+1, answers+len(s.Answers)
		}
	}
	out := &stagepb.Samples{
		Offsets: make([]uint32, 1, n+1), AnswerOffsets: make([]uint32, 1, samples+1), Voter: make([]string, 0, samples),
		Answer: make([]uint32, 0, answers), Weight: make([]float64, 0, answers), Accepted: make([]bool, 0, answers),
		InputTokens: make([]uint64, 0, samples), OutputTokens: make([]uint64, 0, samples),
	}
	var names dictionary
	for i := range n {
		for _, s := range list(i) {
			for _, a := range s.Answers {
				out.Answer = append(out.Answer, names.number(a.Label))
				out.Weight = append(out.Weight, a.Weight)
				out.Accepted = append(out.Accepted, a.Accepted)
				set(&out.Reason, len(out.Answer)-1, answers, Valid(a.Reason))
				set(&out.Reading, len(out.Answer)-1, answers, Valid(a.Reading))
				set(&out.Explanation, len(out.Answer)-1, answers, Valid(a.Explanation))
			}
			out.AnswerOffsets = append(out.AnswerOffsets, uint32(len(out.Answer)))
			out.Voter = append(out.Voter, Valid(s.Voter))
			out.InputTokens = append(out.InputTokens, s.Usage.InputTokens)
			out.OutputTokens = append(out.OutputTokens, s.Usage.OutputTokens)
			set(&out.CachedTokens, len(out.Voter)-1, samples, s.Usage.CachedTokens)
			set(&out.Text, len(out.Voter)-1, samples, Valid(s.Text))
			set(&out.Model, len(out.Voter)-1, samples, Valid(s.Model))
			set(&out.Distance, len(out.Voter)-1, samples, s.Distance)
			if s.Key != (sdk.Key{}) {
				if out.Key == nil {
					out.Key = make([][]byte, samples)
				}
				out.Key[len(out.Voter)-1] = s.Key[:]
			}
		}
		out.Offsets = append(out.Offsets, uint32(len(out.Voter)))
	}
	out.Names = names.names
	return out
}

func unpackSamples(in *stagepb.Samples, n int) ([][]sdk.Sample, error) {
	if in == nil {
		return make([][]sdk.Sample, n), nil
	}
	total := max(len(in.AnswerOffsets)-1, 0)
	if err := cmp.Or(
		few("samples", total, MaxRecords),
		spans("samples", in.Offsets, n, total),
		spans("samples.answers", in.AnswerOffsets, total, len(in.Answer)),
		optional("samples.voter", len(in.Voter), total),
		optional("samples.input_tokens", len(in.InputTokens), total),
		optional("samples.output_tokens", len(in.OutputTokens), total),
		optional("samples.cached_tokens", len(in.CachedTokens), total),
		optional("samples.reason", len(in.Reason), len(in.Answer)),
		optional("samples.reading", len(in.Reading), len(in.Answer)),
		optional("samples.explanation", len(in.Explanation), len(in.Answer)),
		optional("samples.text", len(in.Text), total),
		optional("samples.model", len(in.Model), total),
		optional("samples.key", len(in.Key), total),
		optional("samples.distance", len(in.Distance), total),
		whole("samples.weight", len(in.Weight), len(in.Answer)),
		optional("samples.accepted", len(in.Accepted), len(in.Answer)),
	); err != nil {
		return nil, err
	}
	answers := make([]sdk.Answer, len(in.Answer))
	for i := range answers {
		if int(in.Answer[i]) >= len(in.Names) {
			return nil, fmt.Errorf("column samples: answer %d of %d names", in.Answer[i], len(in.Names))
		}
		answers[i] = sdk.Answer{
			Label: in.Names[in.Answer[i]], Weight: in.Weight[i], Accepted: at(in.Accepted, i),
			Reason: at(in.Reason, i), Reading: at(in.Reading, i), Explanation: at(in.Explanation, i),
		}
	}
	all := make([]sdk.Sample, total)
	for i := range all {
		lo, hi := in.AnswerOffsets[i], in.AnswerOffsets[i+1]
		all[i] = sdk.Sample{
			Voter: at(in.Voter, i), Answers: answers[lo:hi:hi],
			Usage: sdk.Usage{
				InputTokens: at(in.InputTokens, i), CachedTokens: at(in.CachedTokens, i), OutputTokens: at(in.OutputTokens, i),
			},
			Text: at(in.Text, i), Model: at(in.Model, i), Distance: at(in.Distance, i),
		}
		switch key := at(in.Key, i); len(key) {
		case 0:
		case len(sdk.Key{}):
			all[i].Key = sdk.Key(key)
		default:
			return nil, fmt.Errorf("column samples.key: a key of %d bytes, and not of %d", len(key), len(sdk.Key{}))
		}
	}
	return ragged(all, in.Offsets), nil
}

// EncodeVerdicts converts verdicts into rows.
func EncodeVerdicts(verdicts []sdk.Verdict) *stagepb.Rows {
	out := &stagepb.Verdicts{
		Answer: make([]string, len(verdicts)), Agreement: make([]float64, len(verdicts)), Reason: make([]string, len(verdicts)),
	}
	offsets := []uint32{0}
	for i, v := range verdicts {
		out.Answer[i], out.Agreement[i], out.Reason[i] = Valid(v.Answer), v.Agreement, Valid(v.Reason)
		set(&out.Confidence, i, len(verdicts), v.Confidence)
		set(&out.Unknown, i, len(verdicts), v.Unknown)
		for _, l := range v.Labels {
			out.Label, out.LabelConfidence = append(out.Label, Valid(l.Label)), append(out.LabelConfidence, l.Confidence)
		}
		offsets = append(offsets, uint32(len(out.Label)))
	}
	if len(out.Label) > 0 {
		out.LabelOffsets = offsets
	}
	return &stagepb.Rows{N: uint32(len(verdicts)), Verdicts: out}
}

// DecodeVerdicts returns the n verdicts in rows.
func DecodeVerdicts(rows *stagepb.Rows, n int) ([]sdk.Verdict, error) {
	in := rows.GetVerdicts()
	if err := cmp.Or(
		whole("verdicts", int(rows.GetN()), n),
		whole("verdicts.answer", len(in.GetAnswer()), n),
		whole("verdicts.agreement", len(in.GetAgreement()), n),
		optional("verdicts.reason", len(in.GetReason()), n),
		optional("verdicts.confidence", len(in.GetConfidence()), n),
		optional("verdicts.unknown", len(in.GetUnknown()), n),
		few("verdicts.labels", len(in.GetLabel()), MaxElements),
		whole("verdicts.label_confidence", len(in.GetLabelConfidence()), len(in.GetLabel())),
	); err != nil {
		return nil, err
	}
	verdicts := make([]sdk.Verdict, n)
	if len(in.GetLabel()) > 0 {
		if err := spans("verdicts.labels", in.GetLabelOffsets(), n, len(in.Label)); err != nil {
			return nil, err
		}
	}
	for i := range verdicts {
		verdicts[i] = sdk.Verdict{Answer: in.Answer[i], Agreement: in.Agreement[i], Confidence: at(in.Confidence, i), Unknown: at(in.Unknown, i), Reason: at(in.Reason, i)}
		if len(in.Label) == 0 {
			continue
		}
		for j := in.LabelOffsets[i]; j < in.LabelOffsets[i+1]; j++ {
			verdicts[i].Labels = append(verdicts[i].Labels, sdk.LabelConfidence{Label: in.Label[j], Confidence: in.LabelConfidence[j]})
		}
	}
	return verdicts, nil
}
