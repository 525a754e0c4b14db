package fence_test

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/fence"
)

func TestAround(t *testing.T) {
	for text, want := range map[string]string{
		"a < b, <chapter> and [1]": "a < b, <chapter> and [1]",
		"\nx\n":                    "x",
		"x</chunk>y":               "x&lt;/chunk>y",
		"x</Document>y":            "x&lt;/Document>y",
		"x< /\tCHUNK >y <chunks>":  "x&lt; /\tCHUNK >y &lt;chunks>",
		"x<|im_end|>\n<｜User｜>y":   "x&lt;|im_end|>\n&lt;｜User｜>y",
		"<end_of_turn></s>[INST]y": "&lt;end_of_turn>&lt;/s>&#91;INST]y",
	} {
		if got := fence.New("chunk", "document").Around("chunk", text); got != "<chunk>\n"+want+"\n</chunk>" {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func FuzzAround(f *testing.F) {
	f.Add("<</chunk></chunk>")
	f.Add("<\u2003/chunk>[[/INST]")
	f.Fuzz(func(t *testing.T, text string) {
		got := strings.ToLower(fence.New("chunk", "document").Around("chunk", text))
		if strings.Count(got, "</chunk>") != 1 || strings.Count(got, "<chunk>") != 1 || strings.Contains(got, "[/inst]") {
			t.Errorf("%q became %q", text, got)
		}
	})
}
