package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/show/terminal"
)

// ConsoleCommands describes the possible lines of racflow console.
const ConsoleCommands = `    EXPRESSION     such as var.model, local.x, upper("a"): what a file may write
    :item TEXT     the item that rules see from now on: a text, or as JSON, such as
                   {"text": "...", "meta": {}, "candidates": [{"label": "a", "score": 0.9}],
                   "votes": [{"voter": "knn", "answer": "a"}], "margin": 0.2, "answer": "a"}
    :row N         the item is the Nth row of the pipeline's input
    :rule RULE     such as :rule margin < var.margin_below; it sees the names of flag
    :help          these commands, and the names that there are
`

// ConsoleHelp lists the commands of racflow console, and the names that an expression may use. item:
// one is set.
func ConsoleHelp(w io.Writer, file *pipeline.File, item bool) error {
	tw := terminal.NewTable(w)
	fmt.Fprint(tw, ConsoleCommands)
	var names []string
	for _, v := range file.Variables {
		names = append(names, "var."+v.Name)
	}
	for _, name := range file.Locals() {
		names = append(names, "local."+name)
	}
	if len(names) > 0 {
		fmt.Fprintf(tw, "\nnames of the file: %s\n", strings.Join(names, ", "))
	}
	if item {
		fmt.Fprintln(tw, "\nnames of the item:")
	} else {
		fmt.Fprintln(tw, "\nnames of an item, once there is one by :item or :row:")
	}
	for _, n := range rule.Described(rule.Inspect) {
		what := n.Type
		var fields []string
		for _, f := range n.Fields {
			fields = append(fields, f.Name)
		}
		if len(fields) > 0 {
			what += " with " + strings.Join(fields, ", ")
		}
		fmt.Fprintf(tw, "%s\t%s\n", n.Name, what)
	}
	return tw.Flush()
}
