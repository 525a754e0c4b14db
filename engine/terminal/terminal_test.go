package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestSanitize(t *testing.T) {
	if got, want := Sanitize("refused: \x1b[31m\a\u009b\u202e\r\nracflow: done\n\tat main.go:7"), "refused: \uFFFD[31m\uFFFD\uFFFD\uFFFD\uFFFD\n    racflow: done\n    \tat main.go:7"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, true)
	p.every = 0
	p.start = time.Now().Add(-2 * time.Second)
	p.Update("answered", 100, 300)
	p.Update("answered", 200, 0)
	p.Clear()
	got := out.String()
	for _, want := range []string{"answered: 100 of 300, ", " left", "\r\x1b[Kanswered: 200, ", "/s\r\x1b[K"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

func TestWrap(t *testing.T) {
	tests := []struct {
		name, text string
		width      int
		want       string
	}{
		{name: "words", text: "one two three", width: 8, want: "one two|three"},
		{name: "fits", text: "one two", width: 7, want: "one two"},
		{name: "a long word", text: "abcdefghij kl", width: 4, want: "abcd|efgh|ij|kl"},
		{name: "lines stay", text: "a\n\n\nb\r\n", width: 9, want: "a||b"},
		{name: "indented", text: "    code here", width: 9, want: "    code|here"},
		{name: "wide", text: "知識知識 知", width: 5, want: "知識|知識|知"},
		{name: "accents take no column", text: "e\u0301e\u0301e\u0301 x", width: 3, want: "e\u0301e\u0301e\u0301|x"},
		{name: "narrower than a character", text: "知識", width: 1, want: "知|識"},
		{name: "escapes", text: "a\x1b[31mb\u202ec", width: 20, want: "a\uFFFD[31mb\uFFFDc"},
		{name: "nothing", text: " \n\t\n", width: 9, want: ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			lines := Wrap(test.text, test.width)
			if got := strings.Join(lines, "|"); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestFit(t *testing.T) {
	for text, want := range map[string]string{"abcdef": "abcdef", "abcdefg": "abcde…", "知識知": "知識知", "知識知識": "知識…", "": ""} {
		if got := Fit(text, 6); got != want || Width(got) > 6 {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestReflow(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"a paragraph", "one\ntwo\n\nthree", "one two\n\nthree"},
		{"a list", "see:\n- one\n  more\n- two\n10. ten", "see:\n- one more\n- two\n10. ten"},
		{"a table", "before\n| a | b |\n|---|---|\nafter", "before\n| a | b |\n|---|---|\nafter"},
		{"a heading", "# A\ntext\nmore", "# A\ntext more"},
		{"code", "```\na\nb\n```\nc\nd", "```\na\nb\n```\nc d"},
		{"indented code", "    a\n    b", "    a\n    b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Reflow(test.text); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
