package cli

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// TestCompletions completes names of a file that is still being written.
func TestCompletions(t *testing.T) {
	path := filepath.Join(folder(t, map[string]string{"p.hcl": `
variable "train" {
  description = "Rows."
  type        = path
}
variable "tie" { description = env("TIE") }
pipeline "p" {}
pipeline "q" { # which is still being written
`}), "p.hcl")
	for given, want := range map[string][]string{"": {"train=\tRows.", "tie=\t"}, "train=": nil} {
		got, _ := completeVariable(nil, []string{path}, given)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", given, d)
		}
	}
	got, how := completePipeline(nil, []string{path}, "")
	if d := cmp.Diff([]string{"p", "q"}, got); d != "" || how != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("%v (-want +got):\n%s", how, d)
	}
	if got := named([]string{"none.hcl"}, "variable"); got != nil {
		t.Errorf("of no file: %v", got)
	}
}
