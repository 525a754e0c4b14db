package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
)

// part is something that pipelines have and can do without.
type part struct {
	name string
	// without returns what leaves it out; nothing where the pipeline does not
	// have it.
	without func(*pipeline.Pipeline) []pipeline.Override
}

// parts are what --ablate knows.
var parts = []part{
	{"enrich", unenriched},
	{"dense", oneSided(sdk.ModeLexical, "dense")},
	{"lexical", oneSided(sdk.ModeDense, "lexical")},
	{"rerank", disabled("rerank")},
}

func partNames() string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// disabled leaves out all stages of a block.
func disabled(block string) func(*pipeline.Pipeline) []pipeline.Override {
	return func(p *pipeline.Pipeline) []pipeline.Override {
		var set []pipeline.Override
		for _, s := range p.Stages {
			if s.Enabled && s.Block == block {
				set = append(set, pipeline.Override{Target: block + "." + s.Name + ".enabled", Value: "false"})
			}
		}
		return set
	}
}

// unenriched leaves out all enrich blocks of what is searched: it is then searched
// in another generation, which is built beside the one with them.
func unenriched(p *pipeline.Pipeline) []pipeline.Override {
	var set []pipeline.Override
	for _, k := range p.Knowledge() {
		for _, s := range k.Enrichers() {
			if o := (pipeline.Override{Target: "enrich." + s.Name + ".enabled", Value: "false"}); !slices.Contains(set, o) {
				set = append(set, o)
			}
		}
	}
	return set
}

// off names the first block of a part that the file has and does not use.
func off(p *pipeline.Pipeline, name string) string {
	stages := p.Stages
	for _, k := range p.Knowledge() {
		stages = append(slices.Clip(stages), k.Enrich...)
	}
	for _, s := range stages {
		if !s.Enabled && s.Block == name {
			return s.Block + "." + s.Name
		}
	}
	return ""
}

// oneSided lets all searches of both sides search in one mode. A keep that reads
// a score of the side that is left out, or the fused score, which is another one
// then, would drop what it was not written for: it is left out too. A reranker's
// score is its own.
func oneSided(mode sdk.Mode, without string) func(*pipeline.Pipeline) []pipeline.Override {
	return func(p *pipeline.Pipeline) []pipeline.Override {
		var set []pipeline.Override
		for _, s := range p.Stages {
			stage, drop := s.Block+"."+s.Name, false
			switch {
			case !s.Enabled:
			case s.Retrieve != nil && s.Retrieve.Ranking.Mode == sdk.ModeHybrid:
				set = append(set, pipeline.Override{Target: stage + ".mode", Value: string(mode)})
				drop = s.Keep.Reads(without) || s.Keep.Reads("score")
			case s.Kind == sdk.KindRerank && len(set) > 0:
				drop = s.Keep.Reads(without)
			}
			if drop {
				set = append(set, pipeline.Override{Target: stage + ".keep", Value: "null"})
			}
		}
		return set
	}
}

// ablate measures the pipeline whole and without each of the named parts.
func (e *evaluation) ablate(c *cobra.Command, names []string, asJSON bool) error {
	p, err := e.look(c)
	if err != nil {
		return err
	}
	all := []variant{{row: []string{"nothing"}, name: "whole"}}
	var has []string
	for _, part := range parts {
		if len(part.without(p)) > 0 {
			has = append(has, part.name)
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		switch {
		case i < 0:
			return fmt.Errorf("--ablate %s: there is no such part; parts are %s.%s", name, partNames(), rule.DidYouMean(name, has))
		case !slices.Contains(has, name) && off(p, name) != "":
			return fmt.Errorf("--ablate %s: %s is off already; turn it on to measure what it is worth", name, off(p, name))
		case !slices.Contains(has, name) && len(has) == 0:
			return fmt.Errorf("--ablate %s: pipeline %q does not have this part, or nothing else, so there is nothing to leave out", name, p.Name)
		case !slices.Contains(has, name):
			return fmt.Errorf("--ablate %s: pipeline %q does not have this part, or has nothing else; it has %s", name, p.Name, strings.Join(has, ", "))
		}
		v := variant{row: []string{name}, name: "without " + name, set: parts[i].without(p)}
		for _, o := range v.set {
			if strings.HasSuffix(o.Target, ".keep") {
				v.name += fmt.Sprintf("\n%s reads a score that is not there then, or is another one: it is left out too", o.Target)
			}
		}
		all = append(all, v)
	}
	return e.compare(c, []string{"WITHOUT"}, all, asJSON)
}

// look reads the file for the pipeline that will be measured. It starts no
// stage.
func (e *evaluation) look(c *cobra.Command) (*pipeline.Pipeline, error) {
	s, err := e.flags.sessionOn(c.Context(), &e.input, nil)
	if err != nil {
		return nil, err
	}
	defer s.close()
	file, diags, err := s.Read(e.path)
	if err != nil {
		return nil, err
	}
	if diags.HasErrors() {
		return nil, &engine.DiagnosticsError{Diagnostics: diags, Sources: file.Sources}
	}
	return s.Choose(file)
}
