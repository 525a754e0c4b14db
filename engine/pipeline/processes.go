package pipeline

import "iter"

// Processes yields the enabled stages of a pipeline that have processes of their own, fallbacks and those
// of the knowledge included, by the names that messages have for them: sample.mine;
// embed.NAME of the knowledge NAME. A fallback has the name of its stage.
func (p *Pipeline) Processes() iter.Seq2[string, *Stage] {
	return func(yield func(string, *Stage) bool) {
		for _, k := range p.Knowledge() {
			for _, s := range k.Stages() {
				name := k.Name
				if s.Block == "enrich" {
					name = s.Name
				}
				if !yield(s.Block+"."+name, s) {
					return
				}
			}
		}
		for _, s := range p.Stages {
			if !s.Enabled || s.Kind == "" { // a search is the engine's own work
				continue
			}
			if !yield(s.Block+"."+s.Name, s) {
				return
			}
			for _, f := range s.Fallbacks {
				if !yield(s.Block+"."+s.Name, f.Stage) {
					return
				}
			}
		}
	}
}
