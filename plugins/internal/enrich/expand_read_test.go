package enrich

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

var (
	keywords  = expansion{Name: "keywords", Characters: 30}
	questions = expansion{Name: "questions", Sentences: true, Characters: 60}
)

func TestList(t *testing.T) {
	tests := []struct {
		name string
		kind expansion
		text string
		cut  bool
		want []string
	}{
		{"lines", keywords, "lost card\nblocking\n\nPIN", false, []string{"lost card", "blocking", "PIN"}},
		{"commas", keywords, "lost card, blocking; PIN、卡", false, []string{"lost card", "blocking", "PIN", "卡"}},
		{"a name before them", keywords, "**Keywords:** lost card, blocking.", false, []string{"lost card", "blocking"}},
		{"an introduction", keywords, "Here are the keywords:\n- lost card\n- blocking", false, []string{"lost card", "blocking"}},
		{"numbers, and a sentence around them", keywords, "Sure!\n1. **lost card**\n2) `blocking`\n(3) \"PIN\"\n[4] fee\nAnything else?", false, []string{"lost card", "blocking", "PIN", "fee"}},
		{"bullets with commas inside", keywords, "• cards, lost\n• fees", false, []string{"cards, lost", "fees"}},
		{"one bullet with all", keywords, "- lost card, blocking", false, []string{"lost card", "blocking"}},
		{"a list", keywords, `["lost card", "blocking", 3, null]`, false, []string{"lost card", "blocking"}},
		{"an object in code", keywords, "Here:\n```json\n{\"keywords\": [\"lost card\", \"blocking\"]}\n```\nDone.", false, []string{"lost card", "blocking"}},
		{"an object with a text", keywords, `{"keywords": "lost card, blocking"}`, false, []string{"lost card", "blocking"}},
		{"objects", questions, `[{"question": "Is it free?"}, {"question": "How long?"}]`, false, []string{"Is it free?", "How long?"}},
		{"once each", keywords, "PIN\nPin\n pin.\nfee", false, []string{"PIN", "fee"}},
		{"no more than four", keywords, "a\nb\nc\nd\ne", false, []string{"a", "b", "c", "d"}},
		{"too long, or no word", keywords, "---\n" + strings.Repeat("x", 31) + "\n?!\nfee", false, []string{"fee"}},
		{"control characters", keywords, "lost\x1b[2J card\tx\x00", false, []string{"lost [2J card x"}},
		{"cut", keywords, "lost card\nblocking\nfe", true, []string{"lost card", "blocking"}},
		{"a list with a comma too many", keywords, `["lost card", "blocking",]`, false, []string{"lost card", "blocking"}},
		{"a list and a quote", keywords, "[\"lost card\"]\nas in \"fee\"", false, []string{"lost card"}},
		{"a cut list", keywords, `["lost card", "blocking", "fe`, true, []string{"lost card", "blocking"}},
		{"cut in the first", keywords, "lost ca", true, nil},
		{"questions with commas", questions, "Is it free, and when?\nHow long does it take?", false, []string{"Is it free, and when?", "How long does it take?"}},
		{"questions and what is none", questions, "I wrote these.\nIs it free?\nThanks.", false, []string{"Is it free?"}},
		{"one question in a list", questions, "Sure.\n1. Is it free?", false, []string{"Is it free?"}},
		{"a question of another script", questions, "要钱吗？", false, []string{"要钱吗？"}},
		{"nothing", keywords, "\n - \n", false, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.kind.clean(test.kind.list(test.text, test.cut), 4)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPacked(t *testing.T) {
	all := [][]string{{"lost card", "blocking"}, {"fee"}}
	tests := []struct {
		name string
		text string
		want [][]string
	}{
		{"an object", `{"1": ["lost card", "blocking"], "2": ["fee"]}`, all},
		{"with names, texts for lists", "```\n{\"chunk 2\": \"fee\", \"chunk 1\": \"lost card, blocking\"}\n```", all},
		{"inside another", `{"keywords": {"1": ["lost card", "blocking"], "2": ["fee"]}}`, all},
		{"lists without numbers", `[["lost card", "blocking"], ["fee"]]`, [][]string{nil, nil}},
		{"one is missing", `{"2": ["fee"]}`, [][]string{nil, {"fee"}}},
		{"one is empty", `{"1": [], "2": ["fee"]}`, [][]string{nil, {"fee"}}},
		{"numbers that nobody gave", `{"0": ["x"], "2": ["fee"], "3": ["y"]}`, [][]string{nil, {"fee"}}},
		{"cut", `{"1": ["lost card", "blocking"], "2": ["fee", "fr`, [][]string{{"lost card", "blocking"}, nil}},
		{"a list that belongs to nobody", "1. lost card\n2. blocking\n3. fee", [][]string{nil, nil}},
		{"nothing", "I cannot.", [][]string{nil, nil}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := keywords.packed(test.text, 2)
			for i := range got {
				got[i] = keywords.clean(got[i], 4)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeepAnswersTakeLinearTime(t *testing.T) {
	for _, deep := range []string{`[`, "[\n", `{"a":`, "1: a "} {
		must.Linear(t, 100, func(n int) {
			text := strings.Repeat(deep, n)
			keywords.list(text, false)
			keywords.packed(text, 3)
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"1": ["a", "b"], "2": "c, d`, true)
	f.Add("Passage 1:\n- a\n[2]: b", false)
	f.Fuzz(func(t *testing.T, text string, cut bool) {
		for _, k := range []expansion{keywords, questions} {
			lists := append(k.packed(text, 3), k.list(text, cut))
			if len(lists) != 4 {
				t.Errorf("%d parts", len(lists))
			}
			for _, list := range lists {
				terms := k.clean(list, 4)
				if len(terms) > 4 {
					t.Errorf("%q", terms)
				}
				for _, term := range terms {
					if term == "" || strings.ContainsAny(term, "\n\r\x00") || len([]rune(term)) > k.Characters {
						t.Errorf("%q of %q", term, text)
					}
				}
			}
		}
	})
}
