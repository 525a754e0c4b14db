package wire

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// TestExcessiveReplies: an excessive reply of a plugin is refused, with the stage's name and the
// bound, before it takes many times its size in memory. If one item is the cause, only this item
// fails.
func TestExcessiveReplies(t *testing.T) {
	flat := func(last int) []uint32 { return []uint32{0, 1, uint32(last)} } // the first row has one
	ones := func(n int) []uint32 { return slices.Repeat([]uint32{1}, n) }
	two := make([]sdk.Item, 2)
	sample := func(ctx context.Context, s *Stage) error {
		_, err := s.Sample(ctx, sdk.Batch{Items: two})
		return err
	}
	good := sdk.Sample{Answers: []sdk.Answer{{Label: "a", Weight: 1}}}
	of := func(second ...sdk.Sample) *stagepb.Rows { return EncodeSamples([][]sdk.Sample{{good}, second}) }
	long := strings.Repeat("x", MaxText+1)
	const million = 1_000_001
	for name, test := range map[string]struct {
		rows *stagepb.Rows
		call func(context.Context, *Stage) error
		want string
		row  bool // the second row fails alone
	}{
		"samples": {of(slices.Repeat([]sdk.Sample{good}, MaxSamples+1)...), sample, "returned 10001 samples for an item; there are at most 10000", true},
		"samples of nothing": {&stagepb.Rows{N: 2, Samples: &stagepb.Samples{Offsets: flat(20_000_000), AnswerOffsets: make([]uint32, 20_000_001)}}, sample,
			"column samples has 20000000 elements; a message has at most 1048576", false},
		"a distribution": {of(sdk.Sample{Answers: slices.Repeat(good.Answers, million)}), sample, "returned 1000001 answers in sample 1; a sample has at most 100000", true},
		"answers of nothing": {&stagepb.Rows{N: 2, Samples: &stagepb.Samples{Offsets: flat(2), AnswerOffsets: []uint32{0, 1, 20_000_000}, Answer: ones(20_000_000), Names: []string{"a", "b"}}}, sample,
			"column samples.answers has 20000000 elements; a message has at most 4194304", false},
		"an answer": {of(sdk.Sample{Answers: []sdk.Answer{{Label: long}}}), sample, "returned a text of 4194305 bytes; a text has at most 4194304 (sample 1)", true},
		"a reason":  {of(good, sdk.Sample{Answers: []sdk.Answer{{Label: "a", Reason: long}}}), sample, "(sample 2)", true},
		"a text":    {of(sdk.Sample{Text: long}), sample, "a text has at most", true},
		"a verdict": {EncodeVerdicts([]sdk.Verdict{{Answer: "a"}, {Answer: "a", Reason: long}}), func(ctx context.Context, s *Stage) error { _, err := s.Elect(ctx, sdk.Batch{Items: two}); return err }, "a text has at most", true},
		"a ranking": {&stagepb.Rows{N: 2, Rankings: &stagepb.Rankings{Offsets: flat(5_000_000), Candidate: ones(5_000_000), Score: make([]float32, 5_000_000)}}, func(ctx context.Context, s *Stage) error { _, err := s.Rerank(ctx, sdk.Batch{Items: two}); return err }, "column rankings has 5000000 elements", false},
		"candidates": {&stagepb.Rows{N: 2, Candidates: &stagepb.Candidates{Offsets: flat(5_000_000), Label: ones(5_000_000), Names: []string{"a", "b"}}}, func(ctx context.Context, s *Stage) error {
			_, err := s.Retrieve(ctx, "c", sdk.Ranking{}, make([]sdk.Query, 2))
			return err
		}, "column candidates has 5000000 elements; a message has at most 1048576", false},
		"chunks": {&stagepb.Rows{N: 2, Chunks: &stagepb.Chunks{Offsets: flat(5_000_000), Start: ones(5_000_000), End: ones(5_000_000)}}, func(ctx context.Context, s *Stage) error { _, err := s.Chunk(ctx, make([]sdk.Document, 2)); return err }, "column chunks has 5000000 elements", false},
		"metadata": {&stagepb.Rows{N: 2, Chunks: &stagepb.Chunks{Offsets: flat(2), Start: []uint32{0, 0}, End: []uint32{1, 1}, Meta: [][]byte{nil, make([]byte, 50<<20)}}}, func(ctx context.Context, s *Stage) error {
			_, err := s.Chunk(ctx, []sdk.Document{{Text: "a"}, {Text: "b"}})
			return err
		}, "metadata of 52428800 bytes; there are at most 4194304", false},
		"prompts": {&stagepb.Rows{N: 2, Prompts: &stagepb.Prompts{Offsets: flat(2_000_000), Text: make([]string, 2_000_000)}}, func(ctx context.Context, s *Stage) error { _, err := s.Prompt(ctx, sdk.Batch{Items: two}); return err }, "column prompts has 2000000 elements", false},
		"their labels": {&stagepb.Rows{N: 2, Prompts: &stagepb.Prompts{Offsets: flat(2), Text: make([]string, 2), Allowed: []*stagepb.Allowed{{}, {Labels: ones(20_000_000)}}, Names: []string{"a", "b"}}}, func(ctx context.Context, s *Stage) error { _, err := s.Prompt(ctx, sdk.Batch{Items: two}); return err },
			"column prompts.allowed has 20000000 elements", false},
	} {
		t.Run(name, func(t *testing.T) {
			reply := &stagepb.RowsReply{Rows: test.rows}
			size := proto.Size(reply)
			s := &Stage{Name: "sample.mine: plugin mine 1.0.0", Conn: answers{func(any) proto.Message { return reply }}, Reads: sdk.Of(sdk.ColumnText)}
			before := allocated()
			err := test.call(t.Context(), s)
			took := allocated() - before
			var failed sdk.RowErrors
			alone := errors.As(err, &failed) && len(failed) == 1 && failed[1] != nil
			text := fmt.Sprint(err)
			if alone {
				text = failed[1].Error()
			}
			if err == nil || alone != test.row || !strings.Contains(text, test.want) || !strings.HasPrefix(text, s.Name) {
				t.Errorf("%v, want %q", err, test.want)
			}
			// A copy of the message, which is larger than the message, and the decoded values.
			if most := uint64(10*size + 256<<20); took > most {
				t.Errorf("%d MiB allocated for a reply of %d", took>>20, size>>20)
			}
		})
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestLongErrors: the text of an error is cut.
func TestLongErrors(t *testing.T) {
	long := strings.Repeat("é", 25<<20)
	s := &Stage{Conn: answers{func(any) proto.Message {
		return &stagepb.RowsReply{Failure: &stagepb.Failure{Code: stagepb.Code_CODE_INVALID, Message: long}}
	}}}
	_, err := s.Sample(t.Context(), sdk.Batch{Items: make([]sdk.Item, 1)})
	if err == nil || len(err.Error()) > MaxErrorText+100 || !strings.HasSuffix(err.Error(), "é… (52428800 bytes in all)") || sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("%.100v", err)
	}
}
