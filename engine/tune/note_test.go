package tune

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNote: what a file of variables was tuned on can be read back from it.
func TestNote(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	digest, err := Digest(write("rows.tsv", "abc"))
	if want := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; err != nil || digest != want {
		t.Fatalf("digest %s, error %v", digest, err)
	}
	s := Subject{Variable: "doubt", Weights: "weights", Argument: "weights", More: map[string]string{"leader": "leads", "scale": "scale"}, Voters: []string{"llm", "knn", "silent"}}
	text := s.Variables(Outcome{Threshold: .123456789, Found: Found{"weights": map[string]float64{"knn": 2, "llm": .5}, "leader": "the \"${best}\""}}, []Assignment{{"k", "15"}, {"fusion", "rrf"}}, 3, "rows.tsv", digest)
	want := `# Written by racflow tune, for -var-file. Measure on other rows than these:
# tuned on sha256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad, 3 items of "rows.tsv"
k      = 15
fusion = "rrf"
doubt  = 0.123457
weights = {
  knn = 2
  llm = 0.5
}
leads = "the \"$${best}\""
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := TunedOn(write("t.hclvars", text)); err != nil || len(got) != 1 || got[0] != digest {
		t.Errorf("it was tuned on %v, error %v", got, err)
	}
	long := "prompt = \"" + strings.Repeat("x", 100_000) + "\"\n"
	if got, err := TunedOn(write("long.hclvars", long+text)); err != nil || len(got) != 1 || got[0] != digest {
		t.Errorf("with a long line before, it was tuned on %v, error %v", got, err)
	}
	if got, err := TunedOn(write("plain.hclvars", "doubt = 1\n")); err != nil || len(got) != 0 {
		t.Errorf("a file that was not tuned: %v, error %v", got, err)
	}
}
