package host

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/redact"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestSecretsInAnyForm writes a secret in the ways in which logs write texts.
func TestSecretsInAnyForm(t *testing.T) {
	const secret = `pass/wörd"𝄞<1>`
	for name, line := range map[string]string{
		"plain":            secret,
		"quoted":           `{"x": "pass/wörd\"𝄞<1>"}`,
		"ascii":            `{"x": "pass/w\u00f6rd\"\ud834\udd1e<1>"}`,
		"slashes":          `{"x": "pass\/wörd\"𝄞<1>"}`,
		"an address":       `https://h/?key=pass%2Fw%C3%B6rd%22%F0%9D%84%9E%3C1%3E`,
		"logged":           `{"level":"INFO","msg":"m","a":"pass\u002fwörd\"𝄞<1>"}`,
		"logged in a list": `{"level":"INFO","msg":"m","a":[{"b":["pass\u002fwörd\"𝄞<1>"]}]}`,
		"logged as a name": `{"level":"INFO","msg":"m","a":{"pass\u002fwörd\"𝄞<1>":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			o := &output{log: slog.New(slog.NewTextHandler(&log, nil)), secrets: &redact.Secrets{}}
			lines := o.lines("stderr")
			o.secrets.Add(secret) // of a stage that starts later than the one that says it
			if _, err := lines.Write([]byte(line + "\n")); err != nil {
				t.Fatal(err)
			}
			if said := log.String(); !strings.Contains(said, "(secret)") || strings.Contains(said, "rd") {
				t.Errorf("the log says %s", said)
			}
		})
	}
}

// TestSecretsInPieces writes a secret in two pieces, in a line, and where a line that
// is too long has a gap.
func TestSecretsInPieces(t *testing.T) {
	const secret = "sk-first-half-second-half"
	for name, pieces := range map[string][]string{
		"two writes":     {"it is sk-first", "-half-second-half.\n"},
		"a long line":    {strings.Repeat("x", maxLine-9) + "sk-first", "-half-second-half and more\n"},
		"across a gap":   {strings.Repeat("x", maxLine+len(secret)) + "sk-first-", "half-second-half\n"},
		"without an end": {"sk-first-half-", "second-half"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			o := &output{log: slog.New(slog.NewTextHandler(&log, nil)), secrets: &redact.Secrets{}}
			o.secrets.Add(secret)
			lines := o.lines("stderr")
			for _, piece := range pieces {
				if _, err := lines.Write([]byte(piece)); err != nil {
					t.Fatal(err)
				}
				o.secrets.Add(strings.Repeat("another", 20)) // more of a line is held from now on
			}
			must.Do(t, lines.Close())
			for _, part := range []string{"sk-first", "half"} {
				if said := log.String() + o.tail(); strings.Contains(said, part) {
					t.Errorf("the log says %q of it: %s", part, said[max(0, len(said)-200):])
				}
			}
		})
	}
}
