package host

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/redact"
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
