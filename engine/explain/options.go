package explain

import (
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/redact"
)

// asBefore are the options with which a file is loaded as a run loaded it, to look at it
// alone: no service is called.
func asBefore(o engine.Options, m manifest.Manifest) engine.Options {
	o.Vars, o.Columns, o.KnowledgeColumns = maps.Clone(o.Vars), maps.Clone(o.Columns), maps.Clone(o.KnowledgeColumns)
	if o.Vars == nil {
		o.Vars = map[string]string{}
	}
	if o.Columns == nil {
		o.Columns = map[string]string{}
	}
	if o.KnowledgeColumns == nil {
		o.KnowledgeColumns = map[string]string{}
	}
	o.Pipeline, o.Input, o.Limit = m.Pipeline, m.Input.Path, m.Limit
	o.Journal, o.Resume, o.Services = false, "", &engine.Services{Mode: governor.Offline}
	files := map[string]bool{}
	if m.Command != nil {
		o.Dir = m.Command.Dir
		for _, f := range m.Command.Flags {
			name, value, _ := strings.Cut(f.Value, "=")
			switch f.Name {
			case "column":
				o.Columns[name] = value
			case "knowledge-column":
				o.KnowledgeColumns[name] = value
			case "var-file":
				path := within(o.Dir, f.Value)
				if _, err := os.Stat(path); err == nil {
					files[f.Value] = true
					o.VarFiles = append(o.VarFiles, path)
				}
			case "plugins":
				o.Plugins = append(o.Plugins, within(o.Dir, f.Value))
			}
		}
	}
	for _, v := range m.Variables {
		_, given := o.Vars[v.Name]
		if _, here := os.LookupEnv("RACFLOW_VAR_" + v.Name); given || v.From == "default" || files[v.From] || here && v.Value == redact.Placeholder {
			continue
		}
		o.Vars[v.Name] = v.Value
	}
	if m.Command != nil { // letter by letter, as maps and lists have to be
		for _, f := range m.Command.Flags {
			if name, value, ok := strings.Cut(f.Value, "="); f.Name == "var" && ok {
				o.Vars[name] = value
			}
		}
	}
	return o
}

func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
