package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ciFolder returns a folder with examples/ci and its data.
func ciFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, part := range []string{"ci", "intent"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join("../../examples", part))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// repository makes a git repository with examples/ci and its data, and returns a clone.
func repository(t *testing.T) (clone string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	origin, dir := ciFolder(t), t.TempDir()
	git(t, origin, "init", "--quiet", "--initial-branch=main")
	git(t, origin, "add", ".")
	git(t, origin, "commit", "--quiet", "-m", "all")
	clone = filepath.Join(dir, "clone")
	git(t, dir, "clone", "--quiet", origin, clone)
	return clone
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	c := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	c.Dir = dir
	must(t, c)
}

// step is a step of the workflow with a script.
type step struct{ name, condition, script string }

// steps reads the steps of examples/ci/workflow.yml.
func steps(t *testing.T) (all []step) {
	t.Helper()
	for _, part := range strings.Split(readFile(t, "../../examples/ci", "workflow.yml"), "\n      - ")[1:] {
		s := step{}
		lines := strings.Split(part, "\n")
		for i, line := range lines {
			line = strings.TrimSpace(line)
			if name, ok := strings.CutPrefix(line, "name: "); ok && i == 0 {
				s.name = name
			}
			if condition, ok := strings.CutPrefix(line, "if: "); ok {
				s.condition = condition
			}
			if script, ok := strings.CutPrefix(line, "run: "); ok {
				if s.script = script; script == "|" {
					s.script = strings.Join(lines[i+1:], "\n")
				}
			}
		}
		if s.script != "" && !strings.HasPrefix(s.script, "go install ") { // the tests have their own racflow
			all = append(all, s)
		}
	}
	return all
}

// workflow runs the steps in a folder as GitHub does, and returns the exit code of the first step
// that fails.
func workflow(t *testing.T, dir string, pull bool) (name string, code int, output string) {
	t.Helper()
	environment := filepath.Join(t.TempDir(), "env")
	env := append(os.Environ(), "PIPELINE=ci/tickets.hcl", "BASE=origin/main", "GITHUB_ENV="+environment)
	for _, s := range steps(t) {
		if s.condition != "" && !pull {
			continue
		}
		kept, _ := os.ReadFile(environment)
		c := exec.Command("bash", "-e", "-c", s.script)
		c.Dir, c.Env = dir, append(slices.Clone(env), strings.Fields(string(kept))...)
		out, err := c.CombinedOutput()
		output += string(out)
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return s.name, exit.ExitCode(), output
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return "", 0, output
}

// TestWorkflow runs the steps of examples/ci/workflow.yml: a push passes, and a pull request that
// spoils the examples fails.
func TestWorkflow(t *testing.T) {
	leaveTo(t, "command", "it is a run for each command")
	clone := repository(t)
	if name, code, out := workflow(t, clone, false); code != 0 {
		t.Fatalf("%s: exit code %d\n%s", name, code, out)
	}
	if report := readFile(t, clone, "racflow.xml"); !strings.Contains(report, `<testsuites tests="4" failures="0" skipped="0">`) {
		t.Error(report)
	}

	rows := readFile(t, clone, "intent/train.tsv")
	spoilt := regexp.MustCompile(`(?m)\t[a-f][a-z_]*$`).ReplaceAllString(rows, "\tspoilt")
	if spoilt == rows {
		t.Fatal("nothing is spoilt")
	}
	write(t, clone, "intent/train.tsv", spoilt)
	name, code, out := workflow(t, clone, true)
	if name != "Test what is expected" || code != exitUnexpected || !strings.Contains(out, "worse than the baseline") {
		t.Errorf("%s: exit code %d\n%s", name, code, out)
	}
	if report := readFile(t, clone, "racflow.xml"); !strings.Contains(report, `type="baseline"`) {
		t.Error(report)
	}
}

// TestCIExample runs the commands of examples/ci/README.md, one after the other.
func TestCIExample(t *testing.T) {
	leaveTo(t, "command", "it is a run for each command")
	dir, text := ciFolder(t), readFile(t, "../../examples/ci", "README.md")
	outputs := map[string]string{}
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(line, "    racflow "); ok {
			outputs[strings.TrimSpace(command)], _ = good(t, racflow(t, filepath.Join(dir, "ci"), strings.Fields(command)...))
		}
	}
	if len(outputs) != 5 {
		t.Errorf("the README has %d commands", len(outputs))
	}
	shown := regexp.MustCompile(`(?m)^    (tickets\.hcl, pipeline.*\n(?:    .*\n)*?)    \.\.\.\n`).FindStringSubmatch(text)
	if shown == nil || !strings.HasPrefix(outputs["test tickets.hcl"], strings.ReplaceAll("\n"+shown[1], "\n    ", "\n")[1:]) {
		t.Errorf("the README shows another output than\n%s", outputs["test tickets.hcl"])
	}
}
