//go:build linux

package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// spendItems are items on which the free voters agree more or less: of number i, i%10 of
// its words speak for another label.
const spendItems = 100

// newSpend is newPaid with such items, and an election that shows how sure it is.
func newSpend(t *testing.T, o modelserver.Options) *paid {
	t.Helper()
	p := newPaid(t)
	var items strings.Builder
	items.WriteString("id\ttext\n")
	for i := range spendItems {
		k := i * 7 % 10
		fmt.Fprintf(&items, "q%03d\t%s%s number %03d\n", i, strings.Repeat("apple ", 10-k), strings.Repeat("bus ", k), i)
	}
	p.change(t, `"majority"`, `"soft"`, `n     = 2`, `n     = 1`)
	write(t, p.dir, "items.tsv", items.String())
	if o.Answer == nil {
		o.Answer = func(modelserver.Ask, int) string { return "vehicle" }
	}
	p.server = modelserver.Serve(t, o)
	return p
}

// spent is a result of a run.
type spent struct {
	ID        string
	Answer    *string
	Agreement float64
	Missing   []string
	Votes     []struct{ Voter string }
}

func (s spent) asked() bool {
	return slices.ContainsFunc(s.Votes, func(v struct{ Voter string }) bool { return v.Voter == "llm" })
}

// leastSure are the ids of the n items on which the free voters agree least, by a run that
// may ask nobody.
func leastSure(t *testing.T, n int) []string {
	t.Helper()
	p := newSpend(t, modelserver.Options{})
	code, stderr := p.run(t, "--calls", "0")
	if code != 0 || p.server.Calls() != 0 || !strings.Contains(stderr, "\n0 of 100 items sent to llm, chosen by confidence: 0 of 0 calls; the others would cost about 0.0") {
		t.Fatalf("exit code %d, %d calls\n%s", code, p.server.Calls(), stderr)
	}
	all := jsonLines[spent](t, p.output(t))
	if len(all) != spendItems {
		t.Fatalf("%d items", len(all))
	}
	for _, s := range all {
		if s.Answer == nil || s.asked() || len(s.Missing) > 0 {
			t.Fatalf("%+v", s)
		}
	}
	slices.SortStableFunc(all, func(a, b spent) int { return cmp.Compare(a.Agreement, b.Agreement) })
	var ids []string
	for _, s := range all[:n] {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return ids
}

func askedIDs(all []spent) []string {
	var ids []string
	for _, s := range all {
		if s.asked() {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// TestCalls makes a number of calls: about the items on which the free voters agree least,
// and the same ones each time.
func TestCalls(t *testing.T) {
	want := leastSure(t, 20)
	var first string
	for i := range 2 {
		p := newSpend(t, modelserver.Options{Latency: time.Duration(i) * 10 * time.Millisecond})
		code, stderr := p.run(t, "--calls", "20")
		if code != 0 || p.server.Calls() != 20 || !strings.Contains(stderr, "\n20 of 100 items sent to llm, chosen by confidence: 20 of 20 calls; the others would cost about 0.0") {
			t.Fatalf("exit code %d, %d calls\n%s", code, p.server.Calls(), stderr)
		}
		got := p.output(t)
		if ids := askedIDs(jsonLines[spent](t, got)); !slices.Equal(ids, want) {
			t.Errorf("asked %v, want %v", ids, want)
		}
		if first == "" {
			first = got
		}
		if got != first {
			t.Error("the second run gives another output")
		}
		if code, _ := p.run(t, "--calls", "20"); code != 0 || p.server.Calls() != 20 || p.output(t) != first {
			t.Errorf("exit code %d, %d calls with the cache", code, p.server.Calls())
		}
	}
}

// TestBudget spends an amount of money: never more, nearly all of it, and about the same
// items when the answers come from the cache.
func TestBudget(t *testing.T) {
	want := leastSure(t, spendItems)
	const budget = 0.012
	p := newSpend(t, modelserver.Options{})
	p.change(t, `model    = "test"`, "model    = \"test\"\n max_tokens = 10\n profile { thinking = false }")
	code, stderr := p.run(t, "--budget", fmt.Sprint(budget))
	calls, first := p.server.Calls(), p.output(t)
	var cost float64
	at := strings.LastIndex(stderr, "cost ")
	if _, err := fmt.Sscanf(stderr[at:], "cost %g", &cost); err != nil || code != 0 || cost > budget || cost < 0.8*budget || calls < 10 || calls == spendItems {
		t.Fatalf("exit code %d, %d calls, %v\n%s", code, calls, err, stderr)
	}
	if ids := askedIDs(jsonLines[spent](t, first)); len(ids) != calls || len(want) != spendItems {
		t.Errorf("asked %v", ids)
	}
	if code, stderr = p.run(t, "--budget", fmt.Sprint(budget)); code != 0 || p.server.Calls() != calls || p.output(t) != first {
		t.Errorf("exit code %d, %d calls with the cache\n%s", code, p.server.Calls(), stderr)
	}
	if code, stderr = p.run(t, "--budget", "0"); code != 0 || p.server.Calls() != calls || !strings.Contains(stderr, "\n0 of 100 items sent to llm, chosen by confidence: 0.00 of 0.00 spent; the others would cost about 0.0") {
		t.Errorf("exit code %d, %d calls\n%s", code, p.server.Calls(), stderr)
	}
}

// TestBudgetOfAKnownModel: once a run has found out that the model does not think, a budget is
// kept without a word of the file about it.
func TestBudgetOfAKnownModel(t *testing.T) {
	const budget = 0.012
	p := newSpend(t, modelserver.Options{})
	p.change(t, `model    = "test"`, "model    = \"test\"\n max_tokens = 10")
	if code, stderr := p.run(t, "--calls", "1"); code != 0 || len(p.server.Probes()) == 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	code, stderr := p.run(t, "--budget", fmt.Sprint(budget))
	var cost float64
	at := strings.LastIndex(stderr, "cost ")
	if _, err := fmt.Sscanf(stderr[at:], "cost %g", &cost); err != nil || code != 0 || cost > budget || cost < 0.8*budget {
		t.Errorf("exit code %d, %v\n%s", code, err, stderr)
	}
}

// TestSpendWithoutTheService takes the service away in the second pass: every item has the
// answer of the free voters, and those whose turn it was say what they lack.
func TestSpendWithoutTheService(t *testing.T) {
	long(t)
	free := newSpend(t, modelserver.Options{})
	free.run(t, "--calls", "0")
	first := jsonLines[spent](t, free.output(t))
	for name, test := range map[string]struct {
		status int
		flag   string // of the election
	}{
		"denied":                      {401, ""},
		"each call fails":             {400, ""},
		"a rule that names the voter": {401, "\n flag = \"any(votes, .voter == 'llm' and not .accepted)\""},
	} {
		t.Run(name, func(t *testing.T) {
			ruled := func(p *paid) *paid {
				p.change(t, `accept = "answer in labels"`, `accept = "answer in labels"`+test.flag)
				return p
			}
			const served = 4
			fault := modelserver.Fault{Kind: modelserver.Status, Status: test.status, If: func(a modelserver.Ask) bool { return a.Number >= served }}
			p := ruled(newSpend(t, modelserver.Options{Faults: []modelserver.Fault{fault}}))
			code, stderr := p.run(t, "--calls", "50")
			all := jsonLines[spent](t, p.output(t))
			asked, missing := 0, 0
			for i, s := range all {
				switch {
				case s.asked():
					asked++
				case s.Answer == nil || *s.Answer != *first[i].Answer || s.Agreement != first[i].Agreement:
					t.Errorf("%+v, without the model %+v", s, first[i])
				case len(s.Missing) > 0:
					missing++
				}
			}
			if code != 3 || len(all) != spendItems || asked != served || missing != 50-served {
				t.Errorf("exit code %d, %d items, %d asked, %d lack the model\n%s", code, len(all), asked, missing, stderr)
			}
			for _, want := range []string{"46 items answered without sample.llm: ", "; the same command with --resume=", "46 provisional", "4 of 100 items sent to llm"} {
				if !strings.Contains(stderr, want) {
					t.Errorf("standard error does not say %q:\n%s", want, stderr)
				}
			}
			healthy := ruled(newSpend(t, modelserver.Options{}))
			healthy.run(t, "--calls", "50")
			p.server = healthy.server
			if code, stderr := p.run(t, "--resume", "--resume-anyway", "--calls", "50"); code != 0 || p.output(t) != healthy.output(t) {
				t.Errorf("exit code %d, and another output than that of a run that nothing disturbed\n%s", code, stderr)
			}
		})
	}
}

// TestResumeSpend ends a run in each of its passes. The resumed one gives the output of one
// that nothing disturbed, asks no more, and knows its limit.
func TestResumeSpend(t *testing.T) {
	long(t)
	undisturbed := newSpend(t, modelserver.Options{})
	undisturbed.run(t, "--calls", "60")
	want := undisturbed.output(t)
	newHeld := func(t *testing.T) (p *paid, release func()) {
		free := make(chan struct{})
		p = newSpend(t, modelserver.Options{Answer: func(a modelserver.Ask, _ int) string {
			if a.Number >= 30 {
				<-free
			}
			return "vehicle"
		}})
		return p, func() { close(free) }
	}
	for name, end := range map[string]os.Signal{"killed while it asks": os.Kill, "interrupted while it asks": os.Interrupt} {
		t.Run(name, func(t *testing.T) {
			p, release := newHeld(t)
			c := p.command(t, "--calls", "60")
			start(t, c)
			await(t, "at 38 calls", func() bool { return p.server.Calls() >= 38 })
			if err := c.Process.Signal(end); err != nil {
				t.Fatal(err)
			}
			defer time.AfterFunc(time.Second, release).Stop()
			_ = c.Wait() // it did not end by itself
			if code := c.ProcessState.ExitCode(); end == os.Interrupt && code != 130 {
				t.Errorf("exit code %d", code)
			}
			code, stderr := p.run(t, "--resume")
			if code != 0 || p.output(t) != want || !strings.Contains(stderr, "60 of 100 items sent to llm, chosen by confidence: 60 of 60 calls") {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
			if again := p.server.Calls() - 60; again > 8 { // those that were under way
				t.Errorf("%d calls more than 60", again)
			}
		})
	}
	t.Run("killed before it asks", func(t *testing.T) {
		p := newSpend(t, modelserver.Options{})
		if code, stderr := p.run(t, "--calls", "0"); code != 0 {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
		id := p.runID(t)
		dir := filepath.Join(p.dir, stateDir, "runs", id)
		journal := readFile(t, dir, "journal.jsonl")
		write(t, dir, "journal.jsonl", journal[:len(journal)/2])
		if err := os.Remove(filepath.Join(dir, "totals.json")); err != nil {
			t.Fatal(err)
		}
		code, stderr := p.run(t, "--resume", "--calls", "60")
		if code != 0 || p.output(t) != want || p.server.Calls() != 60 || !strings.Contains(stderr, "from before") {
			t.Errorf("exit code %d, %d calls\n%s", code, p.server.Calls(), stderr)
		}
	})
	t.Run("with more calls", func(t *testing.T) {
		p := newSpend(t, modelserver.Options{})
		p.run(t, "--calls", "25")
		if code, stderr := p.run(t, "--resume="+p.runID(t), "--calls", "60"); code != 0 || p.output(t) != want || p.server.Calls() != 60 {
			t.Errorf("exit code %d, %d calls\n%s", code, p.server.Calls(), stderr)
		}
	})
}

// TestSpendInput has an input that cannot be read twice, and limits that nothing can be made
// of.
func TestSpendInput(t *testing.T) {
	long(t)
	p := newSpend(t, modelserver.Options{})
	ruled := strings.Replace(p.file(t, "p.hcl"), `use   = "openai"`, "use   = \"openai\"\n when = \"margin < 0.5\"", 1)
	alone := strings.NewReplacer(`sample "knn" { use = "neighbours" }`, "", `sample "prototype" { use = "prototype" }`, "").Replace(p.file(t, "p.hcl"))
	unasked := strings.Replace(p.file(t, "p.hcl"), `use   = "openai"`, "use   = \"openai\"\n enabled = false", 1)
	free := p.file(t, "p.hcl")
	free = free[:strings.Index(free, "price {")] + free[strings.Index(free, "config {"):]
	writeAll(t, p.dir, map[string]string{"ruled.hcl": ruled, "alone.hcl": alone, "unasked.hcl": unasked, "free.hcl": free})
	run := func(file string, args ...string) (int, string) {
		c := p.command(t, args...)
		c.Args[slices.Index(c.Args, "p.hcl")] = file
		c.Stdin = strings.NewReader(p.file(t, "items.tsv"))
		code, _, stderr := ran(t, c)
		return code, stderr
	}
	code, stderr := run("ruled.hcl", "--calls", "7")
	eligible := len(askedIDs(jsonLines[spent](t, p.output(t))))
	if code != 0 || eligible != 7 || !strings.Contains(stderr, "\n7 of 100 items sent to llm, chosen by confidence among the ") {
		t.Errorf("exit code %d, %d asked\n%s", code, eligible, stderr)
	}
	calls := p.server.Calls()
	code, stderr = run("p.hcl", "--input", "-", "--calls", "12")
	if n := len(askedIDs(jsonLines[spent](t, p.output(t)))); code != 0 || n != 12 || p.server.Calls()-calls > 12 || !strings.Contains(stderr, "\n12 of 100 items sent to llm, as they came: 12 of 12 calls\n") {
		t.Errorf("exit code %d, %d asked, %d calls\n%s", code, n, p.server.Calls()-calls, stderr)
	}
	for _, test := range []struct {
		file string
		args []string
		want string
	}{
		{"p.hcl", []string{"--calls", "5", "--no-journal"}, "--calls or --budget keeps first answers in a journal: it cannot be used with --no-journal"},
		{"p.hcl", []string{"--calls", "5", "--budget", "1"}, "calls budget"},
		{"p.hcl", []string{"--calls", "-1"}, "it must be a whole number, at least 0"},
		{"p.hcl", []string{"--budget", "nan"}, "it must be an amount, at least 0"},
		{"alone.hcl", []string{"--calls", "5"}, "every voter calls a service, so nobody would answer the items that are not sent: add a voter that calls none, such as neighbours, or take fewer items with --limit"},
		{"unasked.hcl", []string{"--calls", "5"}, "no voter calls a service, so there is nothing to spend"},
		{"free.hcl", []string{"--budget", "5"}, "sample.llm has no price, so --budget cannot bound what it spends: write price"},
	} {
		if code, stderr := run(test.file, test.args...); code != 1 || !strings.Contains(stderr, test.want) {
			t.Errorf("%s %v: exit code %d, no %q in\n%s", test.file, test.args, code, test.want, stderr)
		}
	}
}
