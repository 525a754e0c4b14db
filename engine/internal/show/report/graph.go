package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/disk"
)

// Graph writes the stages of a file and the data flow between them as a Mermaid flowchart, with
// disabled and unused stages dashed.
func Graph(w io.Writer, f *pipeline.File) error {
	g := &graph{}
	g.line("flowchart TD")
	for i, k := range f.Knowledge {
		id := fmt.Sprintf("k%d", i)
		g.line("  subgraph %s [\"knowledge %s\"]", id, label(k.Name))
		if k.Attached() { // racflow adds nothing to it
			g.line("    %se[\"embed: %s\"] --> %sd[(\"store: %s, %s, read only\")]", id, label(k.Embed.Use), id, label(k.Store.Use), label(k.Collection()))
			g.line("  end")
			continue
		}
		between := ""
		if k.Chunk != nil {
			between = fmt.Sprintf(" --> %sc[\"chunk: %s\"]", id, label(k.Chunk.Use))
		}
		for j, e := range k.Enrichers() {
			between += fmt.Sprintf(" --> %sn%d[\"enrich %s: %s\"]", id, j, label(e.Name), label(e.Use))
		}
		g.line("    %ss[/\"%s\"/]%s --> %se[\"embed: %s\"] --> %sd[(\"store: %s\")]",
			id, label(sourcesOf(k)), between, id, label(k.Embed.Use), id, label(k.Store.Use))
		g.line("  end")
	}
	for i, p := range f.Pipelines {
		g.pipeline(fmt.Sprintf("p%d", i), p, f.Knowledge)
	}
	g.line("  classDef off stroke-dasharray: 5 5,color:#888")
	_, err := io.WriteString(w, g.String())
	return err
}

// sourcesOf names the sources of a knowledge.
func sourcesOf(k *pipeline.Knowledge) string {
	var all []string
	for _, s := range k.Sources {
		all = append(all, sourceOf(s))
	}
	return strings.Join(all, " + ")
}

// sourceOf names a source: a glob of documents from the nearest folder that is no pattern, others by file name.
func sourceOf(s pipeline.Source) string {
	base := filepath.Base(s.Shown())
	if s.Documents == nil || s.Shown() != s.Path {
		return base
	}
	folder, pattern := disk.SplitGlob(s.Path)
	return filepath.Join(filepath.Base(folder), pattern)
}

type graph struct{ strings.Builder }

func (g *graph) line(format string, args ...any) { fmt.Fprintf(g, format+"\n", args...) }

func (g *graph) pipeline(id string, p *pipeline.Pipeline, all []*pipeline.Knowledge) {
	name := p.Name
	if b := budget(p.Budget); b != "" {
		name += ", " + b
	}
	g.line("  subgraph %s [\"pipeline %s\"]", id, label(name))
	input := "input"
	if p.Input != nil {
		input = filepath.Base(p.Input.Shown())
	}
	g.line("    %si[/\"%s\"/]", id, label(input))
	for i, s := range p.Stages {
		text := s.Block + " " + s.Name
		if s.Use != "" {
			text += ": " + s.Use
		}
		text += among(s) + best(s)
		if more := services(s); more != "" && s.Info.Network {
			text += "; " + more
		}
		g.line("    %ss%d[\"%s\"]", id, i, label(text))
		if !s.Enabled || !p.Used(i) {
			g.line("    class %ss%d off", id, i)
		}
	}
	g.line("    %so[/\"verdicts\"/]", id)
	g.line("  end")
	read := map[int]bool{}
	for i, s := range p.Stages {
		if !s.Enabled || !p.Used(i) {
			continue
		}
		needs := p.Needs(i)
		if len(needs) == 0 {
			g.line("  %si --> %ss%d", id, id, i)
		}
		for _, n := range needs {
			read[n] = true
			g.line("  %ss%d --> %ss%d", id, n, id, i)
		}
		for k := range all {
			if s.Retrieve != nil && s.Retrieve.From == all[k] {
				g.line("  k%dd -.-> %ss%d", k, id, i)
			}
		}
	}
	for i, s := range p.Stages {
		if s.Enabled && p.Used(i) && !read[i] {
			g.line("  %ss%d --> %so", id, i, id)
		}
	}
}

// label escapes a text for a quoted Mermaid label.
func label(text string) string {
	return strings.NewReplacer(`"`, "#quot;", "\n", " ", "<", "#lt;", ">", "#gt;").Replace(text)
}
