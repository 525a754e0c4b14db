package wire

import (
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodeSamples makes rows of lists of samples.
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

// set sets value i of a column that is absent where all n values are zero.
func set[T comparable](column *[]T, i, n int, value T) {
	var zero T
	if value == zero {
		return
	}
	if *column == nil {
		*column = make([]T, n)
	}
	(*column)[i] = value
}

func unpackSamples(in *stagepb.Samples, n int) ([][]sdk.Sample, error) {
	if in == nil {
		return make([][]sdk.Sample, n), nil
	}
	total := max(len(in.AnswerOffsets)-1, 0)
	if err := few("samples", total, MaxRecords); err != nil {
		return nil, err
	}
	if err := spans("samples", in.Offsets, n, total); err != nil {
		return nil, err
	}
	if err := spans("samples.answers", in.AnswerOffsets, total, len(in.Answer)); err != nil {
		return nil, err
	}
	for _, err := range []error{
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
		whole("samples.weight", len(in.Weight), len(in.Answer)),
		optional("samples.accepted", len(in.Accepted), len(in.Answer)),
	} {
		if err != nil {
			return nil, err
		}
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
			Text: at(in.Text, i), Model: at(in.Model, i),
		}
		switch key := at(in.Key, i); len(key) {
		case 0:
		case len(sdk.Key{}):
			all[i].Key = sdk.Key(key)
		default:
			return nil, fmt.Errorf("column samples.key: a key of %d bytes, and not of %d", len(key), len(sdk.Key{}))
		}
	}
	lists := make([][]sdk.Sample, n)
	for i := range lists {
		lo, hi := in.Offsets[i], in.Offsets[i+1]
		lists[i] = all[lo:hi:hi]
	}
	return lists, nil
}

// EncodeVerdicts makes rows of verdicts.
func EncodeVerdicts(verdicts []sdk.Verdict) *stagepb.Rows {
	out := &stagepb.Verdicts{
		Answer: make([]string, len(verdicts)), Agreement: make([]float64, len(verdicts)), Reason: make([]string, len(verdicts)),
	}
	for i, v := range verdicts {
		out.Answer[i], out.Agreement[i], out.Reason[i] = Valid(v.Answer), v.Agreement, Valid(v.Reason)
		if v.Confidence != 0 && out.Confidence == nil {
			out.Confidence = make([]float64, len(verdicts))
		}
		if out.Confidence != nil {
			out.Confidence[i] = v.Confidence
		}
	}
	return &stagepb.Rows{N: uint32(len(verdicts)), Verdicts: out}
}

// DecodeVerdicts returns the n verdicts in rows.
func DecodeVerdicts(rows *stagepb.Rows, n int) ([]sdk.Verdict, error) {
	in := rows.GetVerdicts()
	for _, err := range []error{
		whole("verdicts", int(rows.GetN()), n),
		whole("verdicts.answer", len(in.GetAnswer()), n),
		whole("verdicts.agreement", len(in.GetAgreement()), n),
		optional("verdicts.reason", len(in.GetReason()), n),
		optional("verdicts.confidence", len(in.GetConfidence()), n),
	} {
		if err != nil {
			return nil, err
		}
	}
	verdicts := make([]sdk.Verdict, n)
	for i := range verdicts {
		verdicts[i] = sdk.Verdict{Answer: in.Answer[i], Agreement: in.Agreement[i], Confidence: at(in.Confidence, i), Reason: at(in.Reason, i)}
	}
	return verdicts, nil
}
