package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/trust"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/examples"
	"github.com/racflow/racflow/pipelines"
)

// trustVariable is an environment variable with the same values as --trust. Its grants are not
// stored.
const trustVariable = "RACFLOW_TRUST"

// trusting decides whether files may have what they want beyond their folders.
type trusting struct {
	command *cobra.Command // with the flag; nil: the verb has none
	kinds   []string       // granted by the flag
	silent  atomic.Bool

	mu      sync.Mutex              // one question at a time
	earlier map[string][]trust.Want // granted in this process, by folder
}

// newTrusting registers the flag of a command; nil: it has none.
func newTrusting(c *cobra.Command) *trusting {
	t := &trusting{command: c, earlier: map[string][]trust.Want{}}
	if c != nil {
		c.Flags().StringSliceVar(&t.kinds, "trust", nil, "grant what the file wants beyond its folder without a question: all of it, or `KINDS` of hosts, secrets, files, plugins (--trust=hosts,secrets); RACFLOW_TRUST does so for all commands")
		c.Flags().Lookup("trust").NoOptDefVal = "all"
	}
	return t
}

// grants reports whether a list of kinds grants a want.
func grants(kinds []string, w trust.Want) bool {
	return slices.Contains(kinds, "all") || slices.Contains(kinds, string(w.Kind))
}

// checkKinds refuses kinds that do not exist.
func checkKinds(kinds []string) error {
	for _, kind := range kinds {
		if kind != "all" && !slices.Contains(trust.Kinds, trust.Kind(kind)) {
			return fmt.Errorf("--trust and %s: there is no kind %q; there are hosts, secrets, files and plugins, and all", trustVariable, kind)
		}
	}
	return nil
}

// decide implements workspace.Options.Trust. It may ask a person only if the terminal is not the
// input.
func (t *trusting) decide(r workspace.TrustRequest, free bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	ask := func(format string, args ...any) {
		fmt.Fprint(stderr, terminal.Sanitize(fmt.Sprintf(format, args...)))
	}
	var always []string // granted by the environment
	if text := os.Getenv(trustVariable); text != "" {
		always = strings.Split(text, ",")
	}
	if err := checkKinds(slices.Concat(t.kinds, always)); err != nil {
		return err
	}
	kept, unkept := trust.OpenGrants()
	left, err := kept.Left(r, isShipped)
	if err != nil {
		ask("what was granted to %s before cannot be read: %v\n", r.Folder, err)
	}
	var given, open []trust.Want
	for _, w := range left {
		switch {
		case slices.Contains(t.earlier[r.Folder], w) || grants(always, w):
		case grants(t.kinds, w):
			given = append(given, w)
		default:
			open = append(open, w)
		}
	}
	if len(open) > 0 {
		refused := refusal(r, open)
		if r.Silent {
			return refused
		}
		if yes, err := t.agrees(fmt.Sprintf("%s\nGrant that to %s?", wanted(r, open), r.Folder), free); !yes {
			return cmp.Or(err, refused)
		}
	}
	given = append(given, open...)
	if len(given) == 0 {
		return nil
	}
	t.earlier[r.Folder] = append(t.earlier[r.Folder], given...)
	if err := errors.Join(unkept, kept.Grant(r.Folder, given)); err != nil {
		ask("what is granted cannot be kept, and will be asked for again: %v\n", err)
	}
	return nil
}

// agrees asks a person, if there is one at a terminal that is not the input (free).
func (t *trusting) agrees(question string, free bool) (yes bool, err error) {
	if t.silent.Load() || !free || !isTerminal(os.Stdin) || !isTerminal(os.Stderr) {
		return false, nil
	}
	fmt.Fprint(stderr, terminal.Sanitize(question)+" [y/N] ")
	ctx := context.Background()
	if t.command != nil {
		ctx = t.command.Context()
	}
	answer, err := bounded.Interruptible(ctx, func() (string, error) { return strings.ToLower(typedLine(os.Stdin)), nil })
	return err == nil && (answer == "y" || answer == "yes"), err
}

// mergeLabels implements workspace.Options.MergeLabels.
func (t *trusting) mergeLabels(question string, free bool) bool {
	if os.Getenv("RACFLOW_MERGE_LABELS") != "" {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	yes, _ := t.agrees(question+" Merge them?", free)
	return yes
}

// wanted lists what a file wants.
func wanted(r workspace.TrustRequest, wants []trust.Want) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s wants more than the files of its folder:", terminal.Line(r.Path))
	for _, w := range wants {
		fmt.Fprintf(&b, "\n  %s", terminal.Line(w.Text))
	}
	return b.String()
}

func refusal(r workspace.TrustRequest, open []trust.Want) error {
	var kinds []string
	for _, w := range open {
		kinds = append(kinds, string(w.Kind))
	}
	return fmt.Errorf("%s\nnobody has granted that to %s yet, so nothing was started or sent; read the file, and grant it with --trust=%s",
		wanted(r, open), terminal.Line(r.Folder), strings.Join(slices.Compact(kinds), ","))
}

// typedLine reads one line, a byte at a time, so that the rest stays for the next reader of the
// terminal.
func typedLine(keys io.Reader) string {
	var line []byte
	for one := make([]byte, 1); len(line) < 80; line = append(line, one[0]) {
		if n, err := keys.Read(one); n == 0 || err != nil || one[0] == '\n' {
			break
		}
	}
	return strings.TrimSpace(string(line))
}

// isShipped reports whether racflow ships a pipeline file with this content.
func isShipped(content []byte) bool { return shipped()[string(content)] }

var shipped = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, files := range []fs.FS{pipelines.Files, examples.Pipelines} {
		_ = fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, _ error) error { // an embedded file is always read
			if content, err := fs.ReadFile(files, name); err == nil && path.Ext(name) == ".hcl" {
				all[string(content)] = true
			}
			return nil
		})
	}
	return all
})
