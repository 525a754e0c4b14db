package tune

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/source"
)

func TestTuneChoose(t *testing.T) {
	number := func(x float64) *float64 { return &x }
	curve := []Point{
		{Sent: 0, Accuracy: .86, Cost: 0},
		{Sent: .1, Accuracy: .948, Cost: 1},
		{Sent: .2, Accuracy: .94, Cost: 2},
		{Sent: .3, Accuracy: .949, Cost: 3},
		{Sent: .4, Accuracy: .951, Cost: 4},
		{Sent: 1, Accuracy: .95, Cost: 10},
	}
	tests := []struct {
		name  string
		goal  Goal
		curve []Point
		want  int
		fault string
	}{
		{name: "the best", curve: curve, want: 4},
		{name: "an accuracy", goal: Goal{Accuracy: number(.94)}, curve: curve, want: 1},
		{name: "one that is not reached", goal: Goal{Accuracy: number(.99)}, curve: curve,
			fault: "no threshold reaches an accuracy of 0.9900: the best is 0.9510, with 40.0 % of the items sent"},
		{name: "a share", goal: Goal{Share: number(.35)}, curve: curve, want: 3},
		{name: "a share below all", goal: Goal{Share: number(.05)}, curve: curve[1:], fault: "no threshold sends as little as 5.0 %"},
		{name: "a cost", goal: Goal{Cost: number(2)}, curve: curve, want: 1},
		{name: "a cost below all", goal: Goal{Cost: number(.5)}, curve: curve[1:], fault: "the least is 1.0000"},
		{name: "one point", curve: curve[5:], want: 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.goal.choose(test.curve)
			if test.fault != "" {
				if err == nil || !strings.Contains(err.Error(), test.fault) {
					t.Errorf("error %v, want %s", err, test.fault)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("chose %d (error %v), want %d", got, err, test.want)
			}
		})
	}
}

// TestTuneNote: the digest of the tuning file can be read back from the file of variables.
func TestTuneNote(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	digest, err := source.Digest(write("rows.tsv", "abc"))
	if want := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; err != nil || digest != want {
		t.Fatalf("digest %s, error %v", digest, err)
	}
	s := Subject{Variable: "doubt", Weights: "weights", Argument: "weights", More: map[string]string{"leader": "leads", "scale": "scale"}}
	text := s.Variables(Outcome{Threshold: .123456789, Found: Found{"weights": map[string]float64{"knn": 2, "llm": .5}, "leader": "the \"${best}\""}}, 3, "rows.tsv", digest)
	want := `# Written by racflow tune, for -var-file. Measure on other rows than these:
# tuned on sha256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad, 3 items of "rows.tsv"
doubt = 0.123457
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
