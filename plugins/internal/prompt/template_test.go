package prompt_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/racflow/racflow/plugins/internal/prompt"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// withTemplate returns a config that names a file with the given template, and has more arguments before it.
func withTemplate(t *testing.T, text, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prompt.tmpl")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return `{` + more + `"template": ` + strconv.Quote(path) + `}`
}

// TestFingerprintFollowsTheTemplate: the fingerprint depends on the template's text, not on where its file is.
func TestFingerprintFollowsTheTemplate(t *testing.T) {
	for _, stage := range []sdk.Stage{prompt.Answer(), prompt.Chat(), prompt.Completion()} {
		fingerprint := func(config string) string {
			open, err := stage.Open(t.Context(), sdk.Setup{}, []byte(config))
			must.Do(t, err)
			return open.(sdk.Fingerprinter).Fingerprint()
		}
		one := fingerprint(withTemplate(t, "x", ""))
		if one != fingerprint(withTemplate(t, "x", "")) || one == fingerprint(withTemplate(t, "y", "")) || one == fingerprint("{}") {
			t.Errorf("%s: the fingerprint is not that of the template's text", stage.Name)
		}
	}
}
