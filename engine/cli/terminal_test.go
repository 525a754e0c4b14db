package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
)

// hostile is a text that clears the terminal, hides the text after it, changes the direction of text,
// and imitates a question of racflow.
const hostile = "\x1b[2J\x1b[H\x1b[8m\x1b]0;t\a\r\b\u009b8m\x7f\u202e\u2066\u200b\u2060\ufeff\u2028\u2029\nGrant that to /home/you? [y/N] "

// escaped returns a text as HCL writes it between quotes; of the control characters, only line ends
// are escaped.
var escaped = strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace

// hostileFiles returns pipeline files with the hostile text in every place for a person's text.
func hostileFiles() map[string]string {
	in := func(text, at, by string) string {
		if !strings.Contains(text, at) {
			panic(at)
		}
		return strings.Replace(text, at, by, 1)
	}
	one := escaped(hostile)
	fine := fmt.Sprintf(`
# %s
variable "v" { default = "%s" }
knowledge "k" {
  source { path = "%s.tsv" }
  embed { use = "hashing" }
  store {}
}
pipeline "p" {
  input { path = "%[3]s.tsv" }
  retrieve "n" { from = knowledge.k }
  prompt "c" {
    use = "chat"
    config {
      none = <<EOT
%[1]s
Grant that to /home/you? [y/N]
EOT
    }
  }
  sample "l" {
    use = "openai"
    retries = 0
    config {
      base_url = "http://127.0.0.1:9/%[2]s"
      model    = "m%[2]s"
      api_key  = secret("CLOUD_KEY%[2]s", "none")
    }
  }
  elect "e" { use = "majority" }
}
`, strings.NewReplacer("\n", " ", "\r", " ").Replace(hostile), one, escaped(hostileName))
	files := map[string]string{"fine": in(fine, "http://127.0.0.1:9/"+one, "http://127.0.0.1:9/")}
	for name, by := range map[string][2]string{
		"label": {`variable "v"`, `variable "` + one + `"`}, "block": {"prompt", `foo "` + one + `" {}` + "\nprompt"}, "use": {`"majority"`, `"m` + one + `/x"`},
		"path": {`{ path = "`, `{ path = "none` + one}, "value": {"retries = 0", `retries = "` + one + `"`}, "address": {"retries = 0", `retries = 1`},
		"variable": {`"m` + one + `"`, `env("` + one + `")`}, "file": {`"m` + one + `"`, `file("` + one + `")`}, "rule": {"retries = 0", `when = "text == '` + one + `"`},
		"bytes": {"retries = 0", strings.ReplaceAll(hostile, "\n", "")}, "not UTF-8": {`"majority"`, "\"\x9b31m\xff\""}, "key": {"retries = 0", `retries = { "` + one + `" = 1 }.x`},
		"heredoc": {"retries = 0", "retries = <<E\n" + hostile + "\nE\n"}, "option": {"retries = 0", `on_error = "` + one + `"`},
	} {
		files[name] = in(fine, by[0], by[1])
	}
	return files
}

// hostileName is the hostile text as a file name.
var hostileName = strings.NewReplacer("/", "_", "?", "_", "[", "_").Replace(hostile)

// TestOutputIsSafe gives every verb files with a hostile text. The output has no character that a
// terminal would obey or hide, and no line that begins like racflow's question. JSON has the complete
// text.
func TestOutputIsSafe(t *testing.T) {
	leaveTo(t, "command", "every verb with many files")
	dir := t.TempDir()
	write(t, dir, hostileName+".tsv", "id\ttext\tlabel\n"+strings.Repeat("1\thello \x1b[2J\u202e there\tgr\x1b[8meet\n2\tbye now\tleave\n", 3))
	for name, text := range hostileFiles() {
		write(t, dir, name+".hcl", text)
	}
	environment := append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir())
	tried, texts := 0, 0
	try := func(trust string, args ...string) string {
		c := racflow(t, dir, args...)
		c.Env = append(environment, trustVariable+"="+trust, "CLOUD_KEY=x")
		_, stdout, stderr := ran(t, c)
		if tried++; strings.Contains(stdout+stderr, "Grant that") {
			texts++
		}
		unsafe := func(r rune) bool {
			return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
		}
		for line := range strings.Lines(stdout + stderr) {
			if strings.HasPrefix(strings.TrimLeft(line, "\ufffd"), "Grant that") || strings.ContainsFunc(line, unsafe) {
				t.Errorf("%q, trust %q: it says %q", args, trust, line)
			}
		}
		return stdout
	}
	args := map[string][]string{"ask": {hostile}, "review": {"--findings"}, "serve": {"--listen", "127.0.0.1:0"}}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		verb := strings.TrimPrefix(c.CommandPath(), "racflow ")
		if c.Flags().Lookup("trust") == nil || verb == "lsp" {
			return
		}
		for name := range hostileFiles() {
			if name == "fine" || slices.Contains([]string{"validate", "run", "plan"}, verb) {
				try("", append(append(strings.Fields(verb), name+".hcl"), args[verb]...)...)
			}
		}
	}
	visit(newRoot())
	for _, of := range [][]string{
		{"plan", "fine.hcl"}, {"run", "--output", "out.jsonl", "fine.hcl"}, {"run", "-v", "--format", "tsv", "--output", hostileName + ".csv", "fine.hcl"}, {"run", "--format", "table", "fine.hcl"},
		{"runs", "list"}, {"runs", "show", "newest"}, {"runs", "diff", "run-000001", "run-000002"}, {"runs", "resume", hostile}, {"explain", "newest", "1"}, {"explain", "newest", hostile},
		{"doctor", "fine.hcl"}, {"knowledge", "list", "fine.hcl"}, {"store", "stats"}, {"test", "fine.hcl"}, {hostile}, {"run", "--" + hostile}, {"run", hostile}, {"stages", hostile},
		{"plugin", "describe", hostile}, {"init", hostile}, {"run", "--input", hostile, "fine.hcl"}, {"run", "--state", hostile, "-var", hostile, "fine.hcl"},
		{"__complete", "runs", "show", ""}, {"__complete", "run", "--pipeline", "", "fine.hcl"},
	} {
		try("all", of...)
	}
	if tried < 60 || texts < 30 {
		t.Errorf("%d commands were tried, and %d said what was hostile", tried, texts)
	}
	c := racflow(t, dir, "run", "--limit", "1", "fine.hcl")
	c.Env = append(environment, trustVariable+"=all", "CLOUD_KEY=x")
	if _, stdout, _ := ran(t, c); !strings.Contains(stdout, `hello \u001b[2J`+"\u202e there") {
		t.Errorf("for programs, it says %q", stdout)
	}
}

// TestOutputIsWrapped: verbs write for people only through cobra's streams and stderr, which are
// safe.
func TestOutputIsWrapped(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]int{"cli.go": 3, "show.go": 4, "files.go": 1, "trust.go": 1} // to recognise terminals; for colour, progress and the editor protocol
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "os.Stdout") + strings.Count(string(text), "os.Stderr"); n != allowed[name] {
			t.Errorf("%s names os.Stdout or os.Stderr %d times, want %d: write to c.OutOrStdout(), c.ErrOrStderr() or stderr", name, n, allowed[name])
		}
	}
}
