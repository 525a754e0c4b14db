package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/plan"
	"github.com/racflow/racflow/engine/terminal"
)

// property is one of a profile, as it is shown.
type property struct{ name, value string }

// properties are those of a profile, in the order in which it has them.
func properties(profile json.RawMessage) []property {
	d := json.NewDecoder(bytes.NewReader(profile))
	d.UseNumber()
	if _, err := d.Token(); err != nil { // the opening brace
		return nil
	}
	var all []property
	for d.More() {
		name, err := d.Token()
		var value any
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return all
		}
		if inside, ok := value.(map[string]any); ok { // counts, in order
			var parts []string
			for _, name := range slices.Sorted(maps.Keys(inside)) {
				parts = append(parts, fmt.Sprintf("%v %s", inside[name], name))
			}
			value = strings.Join(parts, ", ")
		}
		all = append(all, property{terminal.Sanitize(fmt.Sprint(name)), terminal.Sanitize(fmt.Sprint(value))})
	}
	return all
}

// unknown are the values that say nothing.
func (p property) unknown() bool {
	return p.value == "unknown" || p.value == "0" || p.value == "<nil>" || p.value == ""
}

// profileLine shows what is known of a model in a line.
func profileLine(profile json.RawMessage) string {
	if profile == nil {
		return "not known yet: its first call finds out, or racflow model probe"
	}
	listed := map[string][]string{}
	var rest []string
	for _, p := range properties(profile) {
		switch {
		case p.unknown() || p.name == "probed":
		case p.value == "yes" || p.value == "no":
			listed[p.value] = append(listed[p.value], p.name)
		default:
			rest = append(rest, p.name+" "+p.value)
		}
	}
	var parts []string
	for _, value := range []string{"yes", "no"} {
		if names := listed[value]; names != nil {
			parts = append(parts, value+": "+strings.Join(names, ", "))
		}
	}
	return strings.Join(append(parts, rest...), "; ")
}

// writeModels shows what is known of the models that stages ask.
func (p planned) writeModels(w io.Writer) {
	if len(p.Models) == 0 {
		return
	}
	fmt.Fprintf(w, "\nASKS\tMODEL\tPROFILE\n")
	for _, m := range p.Models {
		fmt.Fprintf(w, "%s\t%s\t%s\n", m.Stage, terminal.Sanitize(m.Name), profileLine(m.Profile))
	}
}

// Models shows a person the profiles of models, each as a table.
func Models(w io.Writer, all []plan.Model) error {
	for i, m := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		asks := ""
		if m.Stage != "" {
			asks = ", asked by " + m.Stage
		}
		fmt.Fprintf(w, "%s at %s%s\n", terminal.Sanitize(m.Name), terminal.Sanitize(m.Endpoint), asks)
		tw := terminal.NewTable(w)
		for _, p := range properties(m.Profile) {
			if p.value == "0" {
				p.value = "-"
			}
			fmt.Fprintf(tw, "  %s\t%s\n", p.name, p.value)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		if m.File != "" {
			fmt.Fprintf(w, "kept in %s, which may be edited\n", m.File)
		}
	}
	return nil
}
