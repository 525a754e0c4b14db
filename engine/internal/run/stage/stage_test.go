package stage

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/racflow/racflow/sdk"
)

// Prompts from the wire have separate copies of shared texts: only one copy is held.
func TestShare(t *testing.T) {
	prompt := func(question string) []sdk.Prompt {
		return []sdk.Prompt{{
			Messages: []sdk.Message{{Text: strings.Clone("all of it"), Shared: true}, {Text: strings.Clone("the end")}, {Text: question}},
			Passages: []string{strings.Clone("a"), strings.Clone("b")},
		}}
	}
	w := &whole{texts: map[string]string{}}
	one, other := prompt("one"), prompt("other")
	w.share(one)
	w.share(other)
	same := func(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }
	a, b := one[0], other[0]
	if !same(a.Messages[0].Text, b.Messages[0].Text) || &a.Passages[0] != &b.Passages[0] {
		t.Error("two copies of the shared message, or of the ids of the passages, are held")
	}
	if same(a.Messages[1].Text, b.Messages[1].Text) || b.Messages[2].Text != "other" {
		t.Error("messages are shared that do not say so")
	}
	for i := range 2 * maxShared {
		p := prompt("more")
		p[0].Messages[0].Text += strings.Repeat("!", i)
		w.share(p)
	}
	if len(w.texts) != maxShared {
		t.Errorf("%d texts are held for prompts to share, want %d", len(w.texts), maxShared)
	}
	var none *whole
	none.share(prompt("of a knowledge that is searched"))
}
