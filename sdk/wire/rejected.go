package wire

import (
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// packRejected makes a column of the answers that were not accepted; nil where there are none.
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
