package wire

import (
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodePrompts makes rows of lists of prompts.
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
			allowed = allowed || len(p.Labels) > 0 || p.None != "" || len(p.Fields) > 0 || p.Passages != nil
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
				a := &stagepb.Allowed{Labels: make([]uint32, len(p.Labels)), None: Valid(p.None), Fields: ValidAll(p.Fields)}
				for j, label := range p.Labels {
					a.Labels[j] = names.number(label)
				}
				if p.Passages != nil { // none are some, too: the answer is a text then as well
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
	for _, err := range []error{
		few("prompts", len(in.Text), MaxRecords),
		few("prompts.allowed", labels, MaxElements),
		spans("prompts", in.Offsets, n, len(in.Text)),
		optional("prompts.chat", len(in.Chat), len(in.Text)),
		optional("prompts.allowed", len(in.Allowed), len(in.Text)),
	} {
		if err != nil {
			return nil, err
		}
	}
	all := make([]sdk.Prompt, len(in.Text))
	for i := range all {
		all[i].Text = in.Text[i]
		for _, m := range at(in.Chat, i).GetMessages() {
			all[i].Messages = append(all[i].Messages, sdk.Message{Role: m.GetRole(), Text: m.GetText(), Shared: m.GetShared()})
		}
		a := at(in.Allowed, i)
		all[i].None, all[i].Fields = a.GetNone(), a.GetFields()
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
	lists := make([][]sdk.Prompt, n)
	for i := range lists {
		lo, hi := in.Offsets[i], in.Offsets[i+1]
		lists[i] = all[lo:hi:hi]
	}
	return lists, nil
}
