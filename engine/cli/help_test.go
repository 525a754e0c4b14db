package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/plugins"
)

// eachCommand calls do with every command in the help.
func eachCommand(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "completion" {
			eachCommand(sub, do)
		}
	}
}

// TestHelp checks that the help of each command is short and complete: a sentence, examples that the
// command accepts, flags in sections, and a page of the manual.
func TestHelp(t *testing.T) {
	eachCommand(newRoot(plugins.Commands()...), func(c *cobra.Command) {
		t.Run(c.CommandPath(), func(t *testing.T) {
			if strings.HasSuffix(c.Short, ".") || strings.Contains(c.Short, ". ") {
				t.Errorf("its description is no sentence without a full stop: %q", c.Short)
			}
			if c.HasParent() && !c.HasSubCommands() && c.Example == "" {
				t.Error("it has no example")
			}
			if c.HasParent() && !c.Parent().HasParent() && c.GroupID == "" {
				t.Error("it is in no group")
			}
			var text strings.Builder
			if err := writeHelp(&text, c, false); err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{c.Short + ".\n", "Usage:\n  " + c.CommandPath(), "-h, --help", "Manual: " + reference} {
				if !strings.Contains(text.String(), part) {
					t.Errorf("its help lacks %q:\n%s", part, text.String())
				}
			}
			if c.HasParent() && c.Long != "" && strings.Contains(text.String(), c.Long) {
				t.Error("--help has what racflow help is for")
			}
			for line := range strings.Lines(c.Example) {
				parses(t, strings.TrimSpace(line))
			}
		})
	})
}

// parses reads a command line as a shell and the command would.
func parses(t *testing.T, line string) {
	_, line, _ = strings.Cut("; "+line, "racflow ") // without the part before a pipe
	line, _, _ = strings.Cut(line, " < ")
	line, _, _ = strings.Cut(line, " > ")
	if line == "" {
		return
	}
	words := wordsOf(t, line)
	root := newRoot(plugins.Commands()...)
	words = singleDash(root, words)
	c, rest, err := root.Find(words)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil && c.Args != nil {
		err = c.Args(c, c.Flags().Args())
	}
	if err != nil {
		t.Errorf("%s: %v", line, err)
	}
}

// wordsOf splits a command line as a shell does.
func wordsOf(t *testing.T, line string) []string {
	t.Helper()
	words, quote, word := []string(nil), rune(0), ""
	for _, r := range line + " " {
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && r == ' ':
			if word != "" {
				words, word = append(words, word), ""
			}
		default:
			word += string(r)
		}
	}
	if quote != 0 {
		t.Errorf("%s: a quotation mark is not closed", line)
	}
	return words
}

// TestFlagsOnce checks that a flag means one thing: if two commands have a flag of the same name, it
// has the same shorthand and the same type.
func TestFlagsOnce(t *testing.T) {
	dashes := singleDash(newRoot(), []string{"run", "-var", "a=b", "-o", "x", "-output=y", "-v", "--", "-var"})
	if got := strings.Join(dashes, " "); got != "run --var a=b -o x --output=y -v -- -var" {
		t.Errorf("single dashes become %q", got)
	}
	eachCommand(newRoot(plugins.Commands()...), func(c *cobra.Command) {
		if f := c.Flags().Lookup("output"); f != nil && f.Shorthand != "o" {
			t.Errorf("%s: --output has no -o", c.CommandPath())
		}
		for _, gone := range []string{"confident", "older"} {
			if c.Flags().Lookup(gone) != nil {
				t.Errorf("%s has --%s, which has another name elsewhere", c.CommandPath(), gone)
			}
		}
	})
}

// TestManual checks that the pages below cmd agree with the commands.
func TestManual(t *testing.T) {
	folder := t.TempDir()
	if err := writeManual(folder, newRoot(plugins.Commands()...)); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(folder, "reference", "*.md"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages (%v)", len(pages), err)
	}
	for _, page := range append(pages, filepath.Join(folder, "README.md")) {
		name, _ := filepath.Rel(folder, page)
		want := readFile(t, folder, name)
		if got, err := os.ReadFile(filepath.Join("../../cmd", name)); err != nil || string(got) != want {
			t.Errorf("cmd/%s is not current (%v): make generate writes it", name, err)
		}
		if lines := strings.Count(want, "\n"); lines > 300 {
			t.Errorf("cmd/%s has %d lines", name, lines)
		}
	}
}
