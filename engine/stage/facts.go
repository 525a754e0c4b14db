package stage

import (
	"time"

	"github.com/racflow/racflow/engine/outcome"
)

// Identity is what a stage's output depends on beyond its arguments.
type Identity struct {
	Stage       string // as "sample.knn", or "sample.llm, fallback.other"
	Use         string
	Fingerprint string         // empty: its plugin gives none
	Learnt      string         // names what it has learnt from its knowledge; empty: nothing
	Resolved    map[string]any // what it chose for arguments that the file leaves to it
}

// Identities returns those of all stages that have a process, in file order.
func (g *Graph) Identities() []Identity {
	var all []Identity
	for _, s := range g.stages {
		if s == nil {
			continue
		}
		if s.Kind != "" {
			all = append(all, Identity{s.String(), s.Use, s.fingerprint, s.learnt, s.resolved})
		}
		for i, f := range s.fallbacks {
			if f.Kind != "" {
				all = append(all, Identity{s.String() + ", fallback." + s.Fallbacks[i].Name, f.Use, f.fingerprint, f.learnt, f.resolved})
			}
		}
	}
	return all
}

// Times returns what each stage has done so far. What a retrieve stage does counts as
// embedding and searching.
func (g *Graph) Times() []outcome.StageTime {
	var all []outcome.StageTime
	for _, block := range g.pipeline.Knowledge() {
		if k := g.knowledge[block]; k != nil {
			embeds, searches := k.Meters()
			rows, busy := embeds.Read()
			all = append(all, outcome.StageTime{Stage: "embed." + block.Embed.Use, Rows: rows, Busy: busy})
			rows, busy = searches.Read()
			all = append(all, outcome.StageTime{Stage: "search." + block.Store.Use, Rows: rows, Busy: busy})
		}
	}
	for _, s := range g.stages {
		if s != nil && s.Kind != "" {
			all = append(all, outcome.StageTime{Stage: s.String(), Rows: int(s.rows.Load()), Busy: time.Duration(s.busy.Load())})
		}
	}
	for i := range all {
		rows, busy := g.workedElsewhere(all[i].Stage)
		all[i].Rows, all[i].Busy = all[i].Rows+rows, all[i].Busy+busy
	}
	return all
}

// Distributions names the voters that have returned distributions.
func (g *Graph) Distributions() []string {
	var all []string
	for _, v := range g.voters {
		if g.stages[v].spread.Load() {
			all = append(all, g.stages[v].Name)
		}
	}
	return all
}
