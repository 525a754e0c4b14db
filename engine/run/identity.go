package run

import (
	"github.com/racflow/racflow/sdk"
)

// Identity is what a stage's output depends on beyond its arguments.
type Identity struct {
	Stage       string // as "sample.knn", or "sample.llm, fallback.other"
	Use         string
	Fingerprint string // empty: its plugin tells nothing
}

// Identities returns those of all stages that have a process, in file order.
func (r *Run) Identities() []Identity {
	var all []Identity
	for _, s := range r.stages {
		if s == nil {
			continue
		}
		if s.Kind != "" {
			all = append(all, Identity{s.String(), s.Use, s.print})
		}
		for i, f := range s.fallbacks {
			if f.Kind != "" {
				all = append(all, Identity{s.String() + ", fallback." + s.Fallbacks[i].Name, f.Use, f.print})
			}
		}
	}
	return all
}

// Generation is the state of a knowledge that is searched.
type Generation struct {
	Name       string
	Collection string
	Content    string // hash of what its entries were made from
}

// Generations returns those of all knowledge that is searched, in file order.
func (r *Run) Generations() []Generation {
	var all []Generation
	for _, block := range r.pipeline.Knowledge() {
		collection, content := r.knowledge[block].Generation()
		all = append(all, Generation{block.Name, collection, content})
	}
	return all
}

func fingerprint(process any) string {
	if p, ok := process.(sdk.Fingerprinter); ok {
		return p.Fingerprint()
	}
	return ""
}
