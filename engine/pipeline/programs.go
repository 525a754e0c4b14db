package pipeline

import (
	"slices"

	"github.com/racflow/racflow/engine/program"
)

// Programs are those of third parties that the pipeline's enabled stages and what they search
// start, each once, in the order in which data meets them.
func (p *Pipeline) Programs() []*program.Program {
	var all []*program.Program
	add := func(s *Stage) {
		if s.Program != nil && !slices.ContainsFunc(all, func(have *program.Program) bool { return have.Name == s.Program.Name }) {
			all = append(all, s.Program)
		}
	}
	for _, k := range p.Knowledge() {
		for _, s := range k.Stages() {
			add(s)
		}
	}
	for _, s := range p.Stages {
		if s.Enabled {
			add(s)
			for _, f := range s.Fallbacks {
				add(f.Stage)
			}
		}
	}
	return all
}
