package eval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
)

// Parts are what pipelines have and can do without.
var Parts = []string{"enrich", "dense", "lexical", "rerank"}

// PartError says why a part cannot be left out.
type PartError struct{ Part, Why string }

func (e *PartError) Error() string { return fmt.Sprintf("leave out %s: %s", e.Part, e.Why) }

// withoutPart returns what leaves a part out; nil where the pipeline does not have it.
func withoutPart(p *pipeline.Pipeline, part string) []pipeline.Override {
	switch part {
	case "enrich":
		return unenriched(p)
	case "dense":
		return oneLeg(p, sdk.ModeLexical, part)
	case "lexical":
		return oneLeg(p, sdk.ModeDense, part)
	}
	var set []pipeline.Override
	for _, s := range p.Stages {
		if s.Enabled && s.Block == part {
			set = append(set, pipeline.Override{Target: part + "." + s.Name + ".enabled", Value: "false"})
		}
	}
	return set
}

// unenriched leaves out all enrich blocks of what is searched: that is another
// generation then, which is built beside the one with them.
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

// oneLeg lets all hybrid searches search in one mode. A keep that reads a score of
// the leg that is left out, or the fused score, which is another one then, would drop
// what it was not written for: it is left out too. A reranker's score is its own.
func oneLeg(p *pipeline.Pipeline, mode sdk.Mode, without string) []pipeline.Override {
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

// off names the first block of a part that the file has and does not use.
func off(p *pipeline.Pipeline, part string) string {
	stages := p.Stages
	for _, k := range p.Knowledge() {
		stages = append(slices.Clip(stages), k.Enrich...)
	}
	for _, s := range stages {
		if !s.Enabled && s.Block == part {
			return s.Block + "." + s.Name
		}
	}
	return ""
}

// without returns the pipeline whole, and without each of the named parts.
func without(p *pipeline.Pipeline, names []string) ([]Variant, error) {
	var has []string
	for _, part := range Parts {
		if len(withoutPart(p, part)) > 0 {
			has = append(has, part)
		}
	}
	all := []Variant{{Values: []string{"nothing"}, Name: "whole"}}
	for _, name := range names {
		v := Variant{Values: []string{name}, Name: "without " + name}
		why := ""
		switch {
		case !slices.Contains(Parts, name):
			why = fmt.Sprintf("there is no such part; parts are %s.%s", strings.Join(Parts, ", "), rule.DidYouMean(name, has))
		case slices.Contains(has, name):
			v.Set = withoutPart(p, name)
		case off(p, name) != "":
			why = off(p, name) + " is off already; turn it on to measure what it is worth"
		case len(has) == 0:
			why = fmt.Sprintf("pipeline %q does not have this part, or nothing else, so there is nothing to leave out", p.Name)
		default:
			why = fmt.Sprintf("pipeline %q does not have this part, or has nothing else; it has %s", p.Name, strings.Join(has, ", "))
		}
		if why != "" {
			return nil, &PartError{name, why}
		}
		for _, o := range v.Set {
			if strings.HasSuffix(o.Target, ".keep") {
				v.Name += fmt.Sprintf("\n%s reads a score that is not there then, or is another one: it is left out too", o.Target)
			}
		}
		all = append(all, v)
	}
	return all, nil
}
