package terminal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestVisible has texts of people and of scripts that need characters without a width.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n":                    "plain\ttext\n",
		"\x1b[2J\r\b\u009b8m\x7f\x00":      "\ufffd[2J\ufffd\ufffd\ufffd8m\ufffd\ufffd",
		"a\u200bb\u2060c\ufeffd\u00ade":    "a\ufffdb\ufffdc\ufffdd\ufffde",
		"a\u202eb\u2066c\u200fd\u061c":     "a\ufffdb\ufffdc\ufffdd\ufffd",
		"one\u2028two\u2029three":          "one\ufffdtwo\ufffdthree",
		"gr\u200dant \u200c\u200dx":        "gr\ufffdant \ufffd\ufffdx",
		"\u3164\u115f\u034f\U000e0041":     "\ufffd\ufffd\ufffd\ufffd",
		"می\u200cخواهم, क्\u200dष":         "می\u200cخواهم, क्\u200dष",
		"👩\u200d💻 ❤\ufe0f, é, 日本語, \u06dd": "👩\u200d💻 ❤\ufe0f, é, 日本語, \u06dd",
		"bad \x9b\xff bytes":               "bad \ufffd\ufffd bytes",
	} {
		if got := Visible(text, "\n\t"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got, want := string(SameLength([]byte("é\x1b[\u202e\u009b\xff\r\n\ra\tb\n"))), "é?[??????\r\n?a\tb\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWriter: characters come in pieces, and what programs read stays as it is.
func TestWriter(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	must.Do(t, err)
	defer f.Close()
	w := NewWriter(f)
	for _, b := range []byte("né\u202e\x1b[2J日\xff\n") {
		if n, err := w.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := Data(w).Write([]byte("\x1b\u202e")); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(f.Name())
	if want := "né\ufffd\ufffd[2J日\ufffd\n\x1b\u202e"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
