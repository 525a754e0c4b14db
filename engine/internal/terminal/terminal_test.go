package terminal

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSanitize(t *testing.T) {
	if got, want := Sanitize("refused: \x1b[31m\a\u009b\u202e\r\nracflow: done\n\tat main.go:7"), "refused: \uFFFD[31m\uFFFD\uFFFD\uFFFD\uFFFD\n    racflow: done\n    \tat main.go:7"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestProgress shows lines for minutes, on a clock of its own.
func TestProgress(t *testing.T) {
	parts := []string{"answered 文書: 10 of 20 items", "5 s left", "1 failed\x1b[2J"}
	for name, test := range map[string]struct {
		width func() int
		takes time.Duration
		want  string
	}{
		"no terminal":            {takes: 70 * time.Second, want: "answered 文書: 10 of 20 items, 5 s left, 1 failed\uFFFD[2J\nanswered 文書: 10 of 20 items, 5 s left, 1 failed\uFFFD[2J\n"},
		"no terminal, soon done": {takes: 29 * time.Second},
		"a terminal":             {width: func() int { return 60 }, takes: 250 * time.Millisecond, want: "answered 文書: 10 of 20 items, 5 s left, 1 failed\uFFFD[2J\r\x1b[Kanswered 文書: 10 of 20 items, 5 s left, 1 failed\uFFFD[2J\r\x1b[K"},
		"a narrow one":           {width: func() int { return 40 }, takes: 150 * time.Millisecond, want: "answered 文書: 10 of 20 items, 5 s left\r\x1b[K"},
		"one column less":        {width: func() int { return 39 }, takes: 150 * time.Millisecond, want: "answered 文書: 10 of 20 items\r\x1b[K"},
		"hardly any room":        {width: func() int { return 13 }, takes: 150 * time.Millisecond, want: "answered 文…\r\x1b[K"},
		"none":                   {width: func() int { return 0 }, takes: 150 * time.Millisecond, want: "…\r\x1b[K"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				p := NewProgress(&out, test.width)
				for range test.takes / (10 * time.Millisecond) {
					p.Update(func(now time.Time) []string {
						if now != time.Now() {
							t.Errorf("asked about %v", now)
						}
						return parts
					})
					time.Sleep(10 * time.Millisecond)
				}
				p.Clear()
				p.Clear()
				if got := out.String(); got != test.want {
					t.Errorf("%q, want %q", got, test.want)
				}
			})
		})
	}
}

// TestResize: the width counts when a line is drawn.
func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		width := 40
		p := NewProgress(&out, func() int { return width })
		for range 2 {
			time.Sleep(time.Second)
			p.Update(func(time.Time) []string { return []string{"embedding", "of a knowledge"} })
			width = 12
		}
		if got, want := out.String(), "embedding, of a knowledge\r\x1b[Kembedding"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
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
