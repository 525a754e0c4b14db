package syntax

import (
	"slices"
	"strings"
	"testing"
)

// TestNext checks where sentences end: at the | of each text.
func TestNext(t *testing.T) {
	for _, text := range []string{
		"One. |Two! |Three? |Four",
		"Dr. Smith and J. R. Jones paid 3.50 to Example Inc. for v1.2.3 of example.org. |Then they left.|",
		"See e.g. Fig. 3, i.e. the last. |It is at 3 p.m. on Monday.|",
		"He said \"Stop.\" |She (who knew.) |Then... |What?! |Yes.|",
		"It was 1999. |I was it. |Vitamin B. was small.|",
		"wait... he said. |And so on.|",
		"1. First item.\n|2. Second item.\n|",
		"我昨天丢了卡。|你呢？|「好！」|是。|",
		"यह एक है। |यह दो है।|",
		"A heading\n\n|a text\nthat goes on\n \n|more",
		"no end",
		"",
		"«Oui.» |Non… |Si.|",
		"It is. |But *this.* |And \u201cthat.\u201d |Done.|",
	} {
		plain := strings.ReplaceAll(text, "|", "")
		var want []int
		at := 0
		for _, part := range strings.Split(text, "|") {
			at += len(part)
			want = append(want, at)
		}
		want = want[:len(want)-1]
		var got []int
		for p := 0; ; {
			if p = NextSentence(plain, p, len(plain)); p < 0 {
				break
			}
			got = append(got, p)
		}
		if !slices.Equal(got, want) {
			marked := plain
			for _, p := range slices.Backward(got) {
				marked = marked[:p] + "|" + marked[p:]
			}
			t.Errorf("got  %q\nwant %q", marked, text)
		}
	}
}
