package openaitest

import (
	"encoding/binary"
	"hash/fnv"
	"strings"
)

// Oracle answers questions about known texts, rightly on a share of them. All
// choices for a text are alike: it is an item that the model knows or does not.
type Oracle struct {
	Truth    map[string]string // text to label
	Labels   []string          // all labels: where the wrong answers come from
	Accuracy float64           // share of the texts that are answered rightly
	OffList  float64           // share of the others that get what is no label
	Seed     uint64
}

// OffListLabel is what Oracle says where it names no label.
const OffListLabel = "none that I know"

// Answer is an Options.Answer. A question about no known text gets the first label.
func (o Oracle) Answer(a Ask, _ int) string {
	item := o.item(a.Text())
	truth, ok := o.Truth[item]
	switch {
	case !ok:
		return o.Labels[0]
	case o.Right(item):
		return truth
	case o.draw(item, "list") < o.OffList:
		return OffListLabel
	}
	at := int(o.draw(item, "label") * float64(len(o.Labels)))
	for o.Labels[at] == truth && len(o.Labels) > 1 {
		at = (at + 1) % len(o.Labels)
	}
	return o.Labels[at]
}

// Right reports whether a text is answered rightly.
func (o Oracle) Right(text string) bool { return o.draw(text, "right") < o.Accuracy }

// item finds the text that a prompt asks about: the last line of it that is a
// known text, whatever stands before a colon in that line.
func (o Oracle) item(prompt string) string {
	if _, ok := o.Truth[prompt]; ok {
		return prompt
	}
	for prompt != "" {
		at := strings.LastIndexByte(prompt, '\n')
		line := strings.TrimSpace(prompt[at+1:])
		_, behind, _ := strings.Cut(line, ": ")
		for _, text := range []string{line, behind} {
			if _, ok := o.Truth[text]; ok {
				return text
			}
		}
		prompt = prompt[:max(at, 0)]
	}
	return ""
}

// draw is a number from 0 to 1 that depends on a text, a purpose and the seed.
func (o Oracle) draw(text, purpose string) float64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, o.Seed))
	_, _ = h.Write([]byte(purpose + "\x00" + text))
	x := h.Sum64() // mixed once more: FNV's high bits are poor for short texts
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return float64((x^x>>33)>>11) / (1 << 53)
}
