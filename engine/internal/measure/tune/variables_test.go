package tune

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTuneChoose(t *testing.T) {
	number := func(x float64) *float64 { return &x }
	// 1,000 items, of which sending everything gets 950.
	curve := []Point{
		{Sent: 0, Accuracy: .86, Cost: 0, items: 1000, lost: 95, gained: 5},
		{Sent: .1, Accuracy: .948, Cost: 1, items: 1000, lost: 2}, // by luck: the next is worse
		{Sent: .2, Accuracy: .94, Cost: 2, items: 1000, lost: 10},
		{Sent: .3, Accuracy: .949, Cost: 3, items: 1000, lost: 1},
		{Sent: .4, Accuracy: .951, Cost: 4, items: 1000, gained: 1},
		{Sent: 1, Accuracy: .95, Cost: 10, items: 1000},
	}
	tests := []struct {
		name  string
		goal  Goal
		curve []Point
		want  int
		fault string
	}{
		{name: "hardly any loss", curve: curve, want: 3},
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

// TestNear: what is lost must be few enough that chance does not hide more.
func TestNear(t *testing.T) {
	tests := []struct {
		items, lost, gained int
		want                bool
	}{
		{1000, 0, 0, true}, {1000, 1, 0, true}, {1000, 2, 0, false}, {1000, 5, 0, false},
		{10000, 36, 0, true}, {10000, 45, 0, false}, {10000, 500, 490, false}, {10000, 490, 500, true},
		{100, 0, 0, true}, {100, 1, 0, false}, // of few items none may be lost
	}
	for _, test := range tests {
		if got := (Point{items: test.items, lost: test.lost, gained: test.gained}).near(); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// TestReference: the points of a curve are compared with the best one, not with everything
// sent, which is worse here than to send nothing.
func TestReference(t *testing.T) {
	fold := func(right ...int) (all []sum) {
		for k, n := range right {
			s := sum{items: 500, sent: 100 * k, right: make([]float64, 500)}
			for i := range n {
				s.right[i] = 1
			}
			all = append(all, s)
		}
		return all
	}
	points := curve([][]sum{fold(405, 406, 420, 419, 380), fold(406, 408, 419, 420, 370)}, -1)
	k, err := Goal{}.choose(points)
	if err != nil || k != 2 {
		t.Errorf("chose %d (error %v) of %+v, want the third, which nothing is better than", k, err, points)
	}
	if p := points[0]; p.lost != 28 || p.gained != 0 || p.near() {
		t.Errorf("with nothing sent %d are lost and %d gained against the best, want 28 and 0", p.lost, p.gained)
	}
}

// TestNote: what a file of variables was tuned on can be read back from it.
func TestTuneNote(t *testing.T) {
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
