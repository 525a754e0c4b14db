//go:build linux

package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// TestAnswersWithoutTheModel spends the budget, or takes the service away: the
// statistical voters answer what the model was not asked about, the exit code and
// standard error say so, and a resumed run with more money asks for the rest.
func TestAnswersWithoutTheModel(t *testing.T) {
	long(t)
	const items = 400
	undisturbed := newPaidItems(t, items)
	good(t, undisturbed.command(t))
	p := newPaidItems(t, items)
	code, stderr := p.run(t, "--max-cost", "0.04")
	first, asked, id := p.output(t), p.server.Calls(), p.runID(t)
	without := strings.Count(first, `"missing":["sample.llm"]`)
	if code != 3 || strings.Count(first, "\n") != items || strings.Contains(first, `"answer":null`) || asked == 0 || without != items-asked {
		t.Fatalf("exit code %d, %d lines, %d calls, %d without the model\n%s", code, strings.Count(first, "\n"), asked, without, stderr)
	}
	for _, want := range []string{
		fmt.Sprintf("%d items in [0-9.]+ s, .*%d provisional", items, without),
		fmt.Sprintf("\n%d items answered without sample.llm: the budget of 0.0400 is spent: .*; the same command with --resume=%s asks for it\n", without, id),
	} {
		if !regexp.MustCompile(want).MatchString(stderr) {
			t.Errorf("standard error does not say %q:\n%s", want, stderr)
		}
	}
	code, stderr = p.run(t, "--max-cost", "10", "--resume")
	if code != 0 || !strings.Contains(stderr, fmt.Sprintf("%d items are answered", items-without)) || p.server.Calls() != items {
		t.Errorf("exit code %d, %d calls\n%s", code, p.server.Calls(), stderr)
	}
	if p.output(t) != undisturbed.output(t) {
		t.Errorf("another output than that of a run that nothing disturbed:\n%s", p.output(t))
	}
	if code, stderr := p.run(t, "--resume"); code != 1 || !strings.Contains(stderr, "left anything to do") {
		t.Errorf("exit code %d for a run that is done\n%s", code, stderr)
	}
	t.Run("denied", func(t *testing.T) {
		p := newPaid(t)
		p.server = modelserver.Serve(t, modelserver.Options{Key: "another"})
		code, stderr := p.run(t)
		out := p.output(t)
		without, failed := strings.Count(out, `"missing":["sample.llm"]`), strings.Count(out, `"error":`)
		if code != 3 || failed > 16 || without+failed != paidItems { // those that were asked before it was clear
			t.Errorf("exit code %d, %d without the model, %d failed\n%s", code, without, failed, stderr)
		}
		if !regexp.MustCompile(fmt.Sprintf(`\n%d items answered without sample.llm: none of its calls was served: .*--resume=`, without)).MatchString(stderr) {
			t.Errorf("standard error:\n%s", stderr)
		}
	})
	t.Run("one question", func(t *testing.T) {
		p := newPaid(t)
		c := p.command(t)
		c.Args = []string{c.Args[0], "ask", "-var", "url=" + p.server.URL, "--max-tokens", "1", "p.hcl", "apple and pear 3"}
		out, err := c.CombinedOutput()
		if c.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), "it was answered without sample.llm: ") || !strings.Contains(string(out), "\nfruit\n") {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("no figures over a mixture", func(t *testing.T) {
		p := newPaid(t)
		c := p.command(t)
		c.Args = []string{c.Args[0], "eval", "-var", "url=" + p.server.URL, "--max-cost", "0.005", "--input", "rows.tsv", "p.hcl"}
		out, err := c.CombinedOutput()
		if c.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "there are no figures") || strings.Contains(string(out), "accuracy") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// TestDroppedAnswers has a model whose answers are paid for and do not count, while
// other voters decide every item.
func TestDroppedAnswers(t *testing.T) {
	doubtful := func(every int) modelserver.Options {
		return modelserver.Options{Answer: func(a modelserver.Ask, _ int) string {
			if a.Number%every == 0 {
				return "fruit?"
			}
			return "vehicle"
		}}
	}
	tests := map[string]struct {
		every int // request whose answers do not count
		verb  string
		want  string
	}{
		"run":       {1, "run", `(?m)^warning: sample.llm: 240 of 240 answers do not count \(100 %\), such as "fruit\?" \(240\); nearest = 1 would read 240 of them as labels$`},
		"eval":      {1, "eval", `(?m)^warning: sample.llm: 80 of 80 answers do not count \(100 %\), such as "fruit\?" \(80\); nearest = 1 would read 80 of them as labels$`},
		"4 percent": {25, "run", ""}, // 5 of 120
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPaid(t)
			p.server = modelserver.Serve(t, doubtful(test.every))
			c := p.command(t)
			if c.Args[1] = test.verb; test.verb == "eval" {
				c.Args = []string{c.Args[0], "eval", "-var", "url=" + p.server.URL, "--input", "rows.tsv", "p.hcl"}
			}
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if test.want == "" && strings.Contains(string(out), "do not count") || !regexp.MustCompile(test.want).Match(out) {
				t.Errorf("no %q in\n%s", test.want, out)
			}
		})
	}
}

// TestAServiceThatCannotAnswer takes the service away, its quota, or the network: the other voters answer every item,
// nothing fails, and no accuracy is of a mixture. With the service back, a resumed run has the answers of one that nothing
// disturbed, and pays for none twice.
func TestAServiceThatCannotAnswer(t *testing.T) {
	long(t)
	const items = 40
	labelled := func(t *testing.T) *paid {
		t.Helper()
		p := newPaidItems(t, items)
		rows := strings.Split(strings.TrimSpace(p.file(t, "items.tsv")), "\n")
		for i := range rows {
			rows[i] += "\t" + map[bool]string{true: "label", false: "fruit"}[i == 0]
		}
		write(t, p.dir, "items.tsv", strings.Join(rows, "\n")+"\n")
		p.change(t, `{ path = "items.tsv" }`, "{\n    path  = \"items.tsv\"\n    label = \"label\"\n  }")
		return p
	}
	undisturbed := labelled(t)
	if code, stderr := undisturbed.run(t); code != 0 || !strings.Contains(stderr, "; accuracy ") {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	quota := modelserver.Options{Faults: []modelserver.Fault{{Kind: modelserver.Status, Status: 429, Code: "insufficient_quota", Message: "You exceeded your current quota.", Share: 1}}}
	for name, test := range map[string]struct {
		flags  []string
		server func(*testing.T) string // nil: the one that answers
		known  int                     // items that are asked about before
		want   string
	}{
		"a closed port": {nil, func(*testing.T) string { return "http://127.0.0.1:1/v1" }, 0, "is down .*connection refused"},
		"no quota":      {nil, func(t *testing.T) string { return modelserver.Serve(t, quota).URL }, 0, "the account has insufficient quota"},
		"offline":       {[]string{"--offline"}, nil, 4, "its response is not in the cache and the run is offline"},
	} {
		t.Run(name, func(t *testing.T) {
			p := labelled(t)
			url := p.server.URL
			if test.server != nil {
				url = test.server(t)
			}
			if test.known > 0 {
				good(t, p.command(t, "--limit", fmt.Sprint(test.known), "--no-journal"))
			}
			code, stderr := p.run(t, append([]string{"-var", "url=" + url, "--overwrite"}, test.flags...)...)
			out, without := p.output(t), items-test.known
			if code != 3 || strings.Count(out, "\n") != items || strings.Count(out, `"missing":["sample.llm"]`) != without || strings.Contains(out, `"error":`) {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
			for _, want := range []string{
				fmt.Sprintf("%d items in .*, %d provisional; no accuracy, which would be of a mixture: %d of %d items are not final", items, without, without, items),
				fmt.Sprintf("\n%d items answered without sample.llm: .*%s.*; the same command with --resume=%s asks for it\n", without, test.want, p.runID(t)),
			} {
				if !regexp.MustCompile(want).MatchString(stderr) {
					t.Errorf("standard error does not say %q:\n%s", want, stderr)
				}
			}
			// Its address is another by then.
			if code, stderr := p.run(t, "--resume", "--resume-anyway"); code != 0 || !strings.Contains(stderr, "; accuracy ") {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
			if p.output(t) != undisturbed.output(t) || p.server.Calls() != undisturbed.server.Calls() {
				t.Errorf("%d calls, not %d, or another output than that of a run that nothing disturbed", p.server.Calls(), undisturbed.server.Calls())
			}
		})
	}
	t.Run("figures", func(t *testing.T) {
		c := racflow(t, undisturbed.dir, "eval", "-var", "url=http://127.0.0.1:1/v1", "--offline", "p.hcl")
		out, _ := c.CombinedOutput()
		if c.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "40 of 40 items have no answer of sample.llm: its response is not in the cache") || strings.Contains(string(out), "accuracy") {
			t.Errorf("exit code %d\n%s", c.ProcessState.ExitCode(), out)
		}
	})
	t.Run("back in time", func(t *testing.T) { // those who were not asked are, at the end of the input
		p := labelled(t)
		// Probes are answered.
		p.change(t, "concurrency = 8", "concurrency = 1", "base_url = var.url", "base_url = var.url\n      probe    = false")
		loading := modelserver.Serve(t, modelserver.Options{Answer: p.answer, Faults: []modelserver.Fault{{Kind: modelserver.Status, Status: 503, First: 3}}})
		code, stderr := p.run(t, "-var", "url="+loading.URL)
		if code != 0 || !strings.Contains(stderr, "a service is down") || p.output(t) != undisturbed.output(t) {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
	})
}
