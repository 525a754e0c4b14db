package cli

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/racflow/racflow/plugins"
)

// TestTypos: each group refuses an unknown word, and each command an unknown flag, and names the
// nearest.
func TestTypos(t *testing.T) {
	refused := func(t *testing.T, want string, args ...string) {
		t.Helper()
		root := newRoot(plugins.Commands()...)
		root.SetArgs(singleDash(root, args))
		root.SetOut(io.Discard)
		err := root.ExecuteContext(t.Context())
		var exit *exitError
		if !errors.As(err, &exit) || exit.code != exitUsage || !strings.Contains(err.Error(), "unknown ") || !strings.Contains(err.Error(), want) {
			t.Errorf("racflow %s: %v; want exit code %d and %q", strings.Join(args, " "), err, exitUsage, want)
		}
	}
	groups, leaves := 0, 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		if c.HasSubCommands() {
			groups++
			typo := c.Commands()[0].Name() + "x"
			refused(t, "; did you mean ", append(path, typo)...)
			refused(t, "; did you mean ", append([]string{"help"}, append(path, typo)...)...)
			refused(t, c.CommandPath()+" --help lists what there is", append(path, "something-else-altogether")...)
		} else {
			leaves++
			flag := ""
			c.Flags().VisitAll(func(f *pflag.Flag) { flag = f.Name })
			if flag == "" {
				flag = "help"
			}
			refused(t, "; did you mean --", append(path, "--"+flag+"x")...)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(plugins.Commands()...))
	if groups < 8 || leaves < 40 {
		t.Errorf("%d groups and %d other commands: the tree was not walked", groups, leaves)
	}
	for args, want := range map[string]string{
		"model pul minilm":         "did you mean pull?",
		"store chek":               "did you mean check?",
		"knowledge lst FILE":       "did you mean list?",
		"completion bsh":           "did you mean bash?",
		"help rum":                 "did you mean run?",
		"help model pul":           "did you mean pull?",
		"runs rm run-000001":       "did you mean remove?",
		"run --limt 3 p.hcl":       "did you mean --limit?",
		"run -vra a=b p.hcl":       "did you mean --var?",
		"runs resume --stat x new": "did you mean --state?",
	} {
		refused(t, want, strings.Fields(args)...)
	}
}
