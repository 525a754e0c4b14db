package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// stable is rage.hcl on a copy of the examples, whose runs share their cache.
type stable struct {
	dir    string
	server *modelserver.Server
	mode   string // of the search
}

func newStable(t *testing.T, mode string) *stable {
	t.Helper()
	s := &stable{dir: t.TempDir(), mode: mode}
	s.server = modelserver.Serve(t, modelserver.Options{Answer: func(modelserver.Ask, int) string { return "card_lost" }})
	for _, name := range []string{"rage.hcl", "rage.tmpl"} {
		write(t, s.dir, name, strings.Replace(readFile(t, "../../pipelines", name), `mode  = "dense"`, fmt.Sprintf("mode  = %q", mode), 1))
	}
	return s
}

// example returns the header and the lines of a file of examples/intent.
func example(t *testing.T, name string) (header string, lines []string) {
	t.Helper()
	lines = strings.Split(strings.TrimSpace(readFile(t, "../../examples/intent", name)), "\n")
	return lines[0], lines[1:]
}

// run answers the items from the knowledge, and returns the prompts that the model was
// asked, each with how often.
func (s *stable) run(t *testing.T, train, items []string, args ...string) map[string]int {
	t.Helper()
	write(t, s.dir, "train.tsv", strings.Join(train, "\n")+"\n")
	write(t, s.dir, "items.tsv", strings.Join(items, "\n")+"\n")
	before := s.server.Calls()
	args = append([]string{
		"run", "-var", "model=m", "-var", "base_url=" + s.server.URL, "-var", "embedder=hashing", "-var", "k=15", "-var", "l=5",
		"-var", "train=train.tsv", "--input", "items.tsv", "--output", "out.jsonl",
	}, args...)
	good(t, racflow(t, s.dir, append(args, "rage.hcl")...))
	asked := map[string]int{}
	for _, a := range s.server.Asks()[before:] {
		asked[a.Text()]++
	}
	return asked
}

// TestStablePrompts changes one row of the knowledge of RAGE, with prompts of their own
// for each of three samples. With dense retrieval the model is asked again for exactly
// those prompts that show the row before or after; what else a hybrid search changes, by
// scores that depend on all rows, is logged.
func TestStablePrompts(t *testing.T) {
	leaveTo(t, "command", "each case is three runs of RAGE")
	header, train := example(t, "train.tsv")
	itemHeader, items := example(t, "test.tsv")
	items = items[:60]
	const row = "row-200\tno robot please, i want a real person to talk to about the tram\ttalk_to_human"
	with := func(rows ...string) []string { return slices.Concat([]string{header}, train[:200], rows, train[200:]) }
	for i := range train { // these rows have an id
		if strings.Count(train[i], "\t") != 2 {
			t.Fatalf("row %q", train[i])
		}
	}
	changes := map[string]struct {
		before, after []string
		old, now      string // the row's text in prompts; empty: it is in none
	}{
		"added":   {nil, []string{row}, "", "talk to about the tram"},
		"changed": {[]string{row}, []string{strings.Replace(row, "tram", "night bus", 1)}, "talk to about the tram", "talk to about the night bus"},
		"removed": {[]string{row}, nil, "talk to about the tram", ""},
	}
	for mode, name := range map[string][]string{"dense": {"added", "changed", "removed"}, "hybrid": {"added"}} {
		for _, name := range name {
			t.Run(mode+" "+name, func(t *testing.T) {
				if testing.Short() && name == "changed" {
					t.Skip("it starts many processes")
				}
				c, s := changes[name], newStable(t, mode)
				all := slices.Concat([]string{itemHeader}, items)
				before := s.run(t, with(c.before...), all)
				again := s.run(t, with(c.after...), all)
				after := s.run(t, with(c.after...), all, "--refresh") // all of them
				if len(before) != 3*len(items) || len(after) != 3*len(items) {
					t.Fatalf("%d and %d prompts of %d items", len(before), len(after), len(items))
				}
				want, affected := map[string]int{}, 0
				for prompt, n := range after {
					if before[prompt] == 0 {
						want[prompt] = n
					}
				}
				if !maps.Equal(again, want) {
					t.Errorf("%d prompts were asked again, %d have changed", len(again), len(want))
				}
				shows := func(prompt, text string) bool { return text != "" && strings.Contains(prompt, text) }
				for prompt := range before { // those that show the row before
					if shows(prompt, c.old) {
						affected++
						if after[prompt] > 0 {
							t.Errorf("a prompt that shows the old row is unchanged:\n%s", prompt)
						}
					} else if mode == "dense" && after[prompt] == 0 && !becomes(after, prompt, c.now) {
						t.Errorf("a prompt that never shows the row has changed:\n%s", prompt)
					}
				}
				showing := 0
				for prompt := range again { // those that show it after
					if shows(prompt, c.now) {
						showing++
					} else if mode == "dense" && c.now != "" {
						t.Errorf("a prompt that does not show the row was asked again:\n%s", prompt)
					}
				}
				t.Logf("%d of %d prompts were asked again; %d showed the row before, %d show it after", len(again), len(after), affected, showing)
				if mode == "dense" && len(again) != max(affected, showing) || len(again) == 0 || len(again) == len(after) {
					t.Errorf("%d prompts were asked again; %d showed the row before, %d show it after", len(again), affected, showing)
				}
			})
		}
	}
}

// becomes reports whether a prompt about the same item shows a text among others.
func becomes(prompts map[string]int, prompt, text string) bool {
	item := prompt[strings.LastIndex(prompt, "Utterance : "):]
	for other := range prompts {
		if text != "" && strings.HasSuffix(other, item) && strings.Contains(other, text) {
			return true
		}
	}
	return false
}

// TestStableItems inserts an item without an id before others: their prompts stay.
func TestStableItems(t *testing.T) {
	header, train := example(t, "train.tsv")
	_, rows := example(t, "test.tsv")
	items := []string{"text"}
	for _, row := range rows[:6] {
		items = append(items, strings.Split(row, "\t")[1])
	}
	s, knowledge := newStable(t, "dense"), slices.Concat([]string{header}, train)
	if first := s.run(t, knowledge, items); len(first) != 18 {
		t.Errorf("%d prompts of 6 items", len(first))
	}
	again := s.run(t, knowledge, slices.Insert(items, 1, "a text that was not there"))
	for prompt := range again {
		if !strings.Contains(prompt, "a text that was not there") {
			t.Errorf("asked again:\n%s", prompt)
		}
	}
	if len(again) != 3 {
		t.Errorf("%d prompts were asked, those of one item are 3", len(again))
	}
}
