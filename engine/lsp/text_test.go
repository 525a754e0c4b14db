package lsp

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Lines end with \n, \r\n and \r; characters are counted in UTF-16 code units.
func TestPositions(t *testing.T) {
	text := newText("a𝄞b\r\nüx\rz\n")
	for offset, want := range map[int]position{
		0: {0, 0}, 1: {0, 1}, 5: {0, 3}, 6: {0, 4}, 8: {1, 0}, 10: {1, 1}, 11: {1, 2}, 12: {2, 0}, 14: {3, 0},
	} {
		if got := text.position(offset); got != want {
			t.Errorf("byte %d is at %v, want %v", offset, got, want)
		}
		if got := text.offset(want); got != offset {
			t.Errorf("%v is byte %d, want %d", want, got, offset)
		}
	}
	for p, want := range map[position]int{{0, 2}: 1, {0, 99}: 6, {2, 99}: 13, {9, 0}: 14, {-1, 0}: 14} {
		if got := text.offset(p); got != want {
			t.Errorf("%v is byte %d, want %d", p, got, want)
		}
	}
}

// An edit replaces the lines that differ.
func TestEdits(t *testing.T) {
	tests := []struct {
		before, after string
		from, to      int // lines
		text          string
	}{
		{"a\nb\nc\n", "a\nB\nc\n", 1, 2, "B\n"},
		{"a\nb\n", "a\nb\nc\n", 2, 2, "c\n"},
		{"a\na\na\n", "a\na\n", 2, 3, ""},
		{"a", "a\n", 0, 0, "a\n"},
	}
	for _, test := range tests {
		got := newText(test.before).edits(test.after)
		if len(got) != 1 || got[0].Range.Start.Line != test.from || got[0].Range.End.Line != test.to || got[0].NewText != test.text {
			t.Errorf("%q to %q: %+v", test.before, test.after, got)
		}
	}
	if got := newText("a\n").edits("a\n"); !cmp.Equal(got, []textEdit{}) {
		t.Errorf("edits of nothing: %v", got)
	}
}

// TestLongText: what is too long to be a pipeline file takes no memory but its own.
func TestLongText(t *testing.T) {
	src := []byte(strings.Repeat("a = 1\n", 1<<18))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	root := outline(src)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 || len(root.attrs) > 0 || root.body.to != len(src) {
		t.Errorf("%d bytes allocated, %d arguments", n, len(root.attrs))
	}
	if root := outline(src[:600]); len(root.attrs) != 100 {
		t.Errorf("%d arguments of a short one", len(root.attrs))
	}
}
