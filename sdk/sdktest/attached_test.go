package sdktest

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
)

// files makes collections that are files of JSON.
func files() Foreign {
	return Foreign{
		Make: func(t testing.TB, rows []sdk.Entry) string {
			raw, err := json.Marshal(rows)
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.CreateTemp(t.TempDir(), "*.json")
			if err == nil {
				_, err = file.Write(raw)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			config, err := json.Marshal(map[string]string{"collection": file.Name()})
			if err != nil {
				t.Fatal(err)
			}
			return string(config)
		},
		Look: func(t testing.TB, config string) string {
			var c struct{ Collection string }
			if err := json.Unmarshal([]byte(config), &c); err != nil {
				t.Fatal(err)
			}
			beside, _ := filepath.Glob(c.Collection + "*")
			raw, _ := os.ReadFile(c.Collection)
			return strings.Join(beside, " ") + "\n" + string(raw)
		},
	}
}

func TestGoodAttacherPasses(t *testing.T) {
	Attached(t, shelfStage(""), files())
	t.Run("without words", func(t *testing.T) { Attached(t, shelfStage("without words"), files()) })
}

// TestFaultyAttachersFail checks that a store which does one thing wrong fails the check that is
// there for it.
func TestFaultyAttachersFail(t *testing.T) {
	for fault, c := range map[string]struct{ check, want string }{
		"another ID each time":            {"opens", "Attach called again"},
		"one ID for all":                  {"opens", "two collections have the ID"},
		"says no fields":                  {"opens", "where the vector of an entry comes from"},
		"years become texts":              {"rows", "metadata"},
		"pages overlap":                   {"rows", "is in two pages"},
		"scans any label":                 {"rows", "a scan of the labels"},
		"unknown ids give the first":      {"get", `the unknown id "unknown" gives`},
		"takes products for cosines":      {"vectors of any length", "its cosine is"},
		"looks at the first row alone":    {"vectors of any length", "its cosine is"},
		"finds half":                      {"dense", "candidates, want"},
		"filters after the cut":           {"filters", "0 candidates, want 1"},
		"compares texts with numbers":     {"filters", "candidates, want 0"},
		"finds all by words":              {"words", "is found by the words"},
		"promises words":                  {"words", "lexical search"},
		"an empty leg":                    {"words", "without words it is a dense search"},
		"takes what is put":               {"refuses to write", "Put gives <nil>"},
		"writes beside it":                {"refuses to write", "the collection was changed"},
		"makes what is not there":         {"unknown collection", "that is not there gives <nil>"},
		"says nothing of the name":        {"unknown collection", "that names it"},
		"opens without Attach":            {"only after Attach", "Search gives <nil>"},
		"forgets the rows while attached": {"attach while searching", ""},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			stage := shelfStage(fault)
			checks := conformance.AttachedChecks(files().in(t))
			said := ""
			for _, check := range checks {
				if path.Base(check.Name) != c.check {
					continue
				}
				subject := &conformance.Subject{Stage: stage, Config: "{}", Start: inMemory(stage), Options: options()}
				conformance.Collect(t.Context(), t.TempDir(), subject, []conformance.Check{check}, func(r conformance.Result) {
					if r.Status == conformance.Failed {
						said += strings.Join(r.Messages, "\n") + "\n"
					}
				})
			}
			if said == "" || !strings.Contains(said, c.want) {
				t.Errorf("attached/%s says %q, not %q", c.check, said, c.want)
			}
		})
	}
}
