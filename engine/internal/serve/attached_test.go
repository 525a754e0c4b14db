package serve

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// theirs writes a collection of another program: the rows of fruit, with a label for each text.
func theirs(t *testing.T, path, id string, label func(string) string) {
	t.Helper()
	now := enginetest.Filed{ID: id}
	for text, l := range right {
		now.Entries = append(now.Entries, sdk.Entry{ID: text, Text: text, Label: label(l), Vector: enginetest.AlphabetOf(text)})
	}
	content := must.Get(json.Marshal(now))(t)
	write(t, path, string(content))
}

// TestAttached: a collection of another program is searched and listed, and reopened if another collection replaces
// it. While it is missing, requests fail with the reason, but the version stays.
func TestAttached(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "collection.json")
	renamed := func(l string) string { return "a " + l }
	theirs(t, path, "1", same)
	r := startIn(t, dir, strings.NewReplacer(`  source { path = "rows.tsv" }`+"\n", "", `use = "hashing"`, `use = "alphabet"`,
		`store { use = "local" }`, "store {\n    use = \"theirs_file\"\n    config { collection = \""+path+"\" }\n  }").Replace(intent), Options{})
	defer r.stop()
	call := func(method, route, body string, status int, want ...string) {
		t.Helper()
		reply, text := send(t, request(t, method, r.url+"/v1/pipelines"+route, body, "Content-Type", "application/json"))
		for _, part := range want {
			if reply.StatusCode != status || !strings.Contains(text, part) {
				t.Errorf("%s %s: %s, without %q: %s", method, route, reply.Status, part, text)
			}
		}
	}
	r.answers(t, same) // at first
	call("GET", "", "", http.StatusOK, `"collection":"theirs"`, `"attached":true`)
	call("POST", "/intent/retrieve", `{"text": "red apple"}`, http.StatusOK, `"id":"red apple"`)

	write(t, path, "dropped")
	const why = "collection theirs was dropped"
	call("POST", "/intent/answer", `{"text": "red apple"}`, http.StatusBadGateway, why)
	call("POST", "/intent/retrieve", `{"text": "red apple"}`, http.StatusBadGateway, why)
	call("POST", "/intent/rebuild?wait=true", "", http.StatusConflict, why)
	theirs(t, path, "1", same)
	r.answers(t, same) // back again

	theirs(t, path, "2", renamed)
	call("POST", "/intent/rebuild?wait=true", "", http.StatusOK, `"attached":true`)
	r.answers(t, renamed) // another collection
}
