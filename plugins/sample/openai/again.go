package openai

import (
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
)

// The most that a model is shown of its answers that were not accepted: the last ones that
// differ, and bytes of one and of its reason.
const (
	maxRejections = 2
	maxLine       = 200 // of an answer that is to be a line
	maxRejected   = 2000
	maxReason     = 200
	maxListed     = 1000 // of labels that are listed again
)

// again are the turns that a chat goes on with where answers were not accepted: each of them,
// what was wrong with it and, at the end, what is allowed. (The library instructor asks again
// like this.)
func again(p sdk.Prompt, rejected []sdk.Rejection) []sdk.Message {
	var last []sdk.Rejection
	most := maxRejected
	if p.Fields == nil && p.Passages == nil {
		most = maxLine
	}
	for _, r := range slices.Backward(rejected) {
		r.Text, r.Reason = clip(strings.TrimSpace(r.Text), most), clip(r.Reason, maxReason)
		if r.Text == "" || slices.ContainsFunc(last, func(other sdk.Rejection) bool { return other.Text == r.Text }) {
			continue
		}
		if last = append(last, r); len(last) == maxRejections {
			break
		}
	}
	slices.Reverse(last)
	var turns []sdk.Message
	for i, r := range last {
		if r.Reason == answer.CutOff {
			r.Reason = "it was too long and was cut off"
		}
		note := fmt.Sprintf("This answer cannot be used: %s.", r.Reason)
		if i == len(last)-1 {
			note += "\n" + allowed(p)
		}
		turns = append(turns, sdk.Message{Role: sdk.MessageAssistant, Text: r.Text}, sdk.Message{Role: sdk.MessageUser, Text: note})
	}
	return turns
}

// clip returns the beginning of a text, at most so many bytes of it.
func clip(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes], "")
}

// allowed says what an answer to a prompt has to be.
func allowed(p sdk.Prompt) string {
	if p.Passages != nil {
		if len(p.Passages) == 0 {
			return "Answer again."
		}
		return "Answer again from the passages, and cite them by their numbers." + unless(p)
	}
	labels := "one of the allowed labels, written exactly as it was given"
	if list := fewshot.JSON(p.Labels); len(p.Labels) > 0 && len(list) <= maxListed {
		labels = "one of these, written exactly so: " + list[1:len(list)-1]
	} else if len(p.Labels) == 0 {
		labels = "a label"
	}
	switch {
	case slices.Contains(p.Fields, sdk.LabelsProperty):
		return fmt.Sprintf("Answer again with one JSON object and nothing else. Each element of its list %q is %s.", sdk.LabelsProperty, labels)
	case p.Fields != nil:
		return fmt.Sprintf("Answer again with one JSON object and nothing else. Its property %q is %s.%s", sdk.LabelProperty, labels, unless(p))
	}
	return fmt.Sprintf("Answer again with a label and nothing else: %s.%s", labels, unless(p))
}

// unless says what the answer is where none fits.
func unless(p sdk.Prompt) string {
	if p.None == "" {
		return ""
	}
	return fmt.Sprintf(" If there is none that fits, it is %s.", fewshot.JSON(p.None))
}

// longest are the longest rejections that there may be, which a forecast of a further try
// reckons with.
func longest() []sdk.Rejection {
	all := make([]sdk.Rejection, maxRejections)
	for i := range all {
		all[i] = sdk.Rejection{Text: string(rune('a'+i)) + strings.Repeat("x", maxRejected), Reason: strings.Repeat("x", maxReason)}
	}
	return all
}
