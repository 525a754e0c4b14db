package plan

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/sdk"
)

// This file lets a dry run search knowledge whose entries do not exist yet, or cannot be searched
// without asking a service. The chunks before enrichment stand in for the entries. They are
// embedded by "hashing" and stored by a "local" store in a folder that is removed after the dry
// run, so no service is asked and the knowledge does not change. A search finds other chunks than a
// run will find, but as many, and of the same lengths.
//
// Filler words of the forecast length replace contexts that a model has not written yet. Candidates
// that a service would rerank stay in their order.

// standIns are the parts of a pipeline that a dry run replaces.
type standIns struct {
	launch stage.Launch
	dir    string                      // of the stand-in store; empty: no knowledge is replaced
	asks   map[string][]knowledge.Asks // by the name of a knowledge that is replaced
	stages map[sdk.Kind]*pipeline.Stage
}

// missing returns, by the name of a knowledge, why its entries cannot be searched in a dry run.
func (p *Plan) missing() map[string]string {
	all := map[string]string{}
	for i, k := range p.Pipeline.Knowledge() {
		r := p.Knowledge[i]
		switch {
		case slices.ContainsFunc(r.Asks, func(a knowledge.Asks) bool { return a.Passages > 0 }):
			all[k.Name] = "a service has yet to enrich them"
		case k.Embed.Info.Network:
			all[k.Name] = "a service embeds them"
		case k.Store.Info.Network && r.Added+r.Changed+r.Removed > 0:
			all[k.Name] = "they are out of date on their server"
		}
	}
	return all
}

// standInStages returns the built-in stages that stand in for the stages of a knowledge; nil: the
// program does not have them.
func standInStages(o Options) map[sdk.Kind]*pipeline.Stage {
	all := map[sdk.Kind]*pipeline.Stage{}
	for kind, use := range map[sdk.Kind]string{sdk.KindEmbed: "hashing", sdk.KindStore: "local"} {
		info, ok := o.Stage(kind, use)
		if !ok {
			return nil
		}
		all[kind] = &pipeline.Stage{Block: string(kind), Kind: kind, Use: use, Info: info, Enabled: true, Config: pipeline.Config{Open: []byte("{}")}}
	}
	return all
}

// standIn prepares to replace the knowledge in StandIns, and rerankers that call services. done
// removes the files written for it.
func (p *Plan) standIn(o Options, f *Forecast) (s *standIns, done func(), err error) {
	s, done = &standIns{launch: o.Launch, asks: map[string][]knowledge.Asks{}}, func() {}
	if len(f.StandIns) == 0 {
		return s, done, nil
	}
	s.stages = standInStages(o)
	for i, k := range p.Pipeline.Knowledge() {
		if f.StandIns[k.Name] != "" {
			s.asks[k.Name] = p.Knowledge[i].Asks
		}
	}
	s.dir, err = os.MkdirTemp("", "racflow-plan-")
	return s, func() { _ = os.RemoveAll(s.dir) }, err
}

// Launch starts a stage or its stand-in.
func (s *standIns) Launch(ctx context.Context, l stage.LaunchRequest) (any, error) {
	asks, replaced := s.asks[l.Knowledge]
	other := s.stages[l.Stage.Kind]
	switch {
	case replaced && l.Stage.Kind == sdk.KindEnrich && l.Stage.Info.Network:
		return fillerOf(asks, l.Stage), nil
	case replaced && other != nil:
		named := *other
		named.Name = l.Knowledge
		l.Stage, l.StateDir = &named, filepath.Join(s.dir, l.Knowledge, string(other.Kind))
		if err := os.MkdirAll(l.StateDir, 0o700); err != nil {
			return nil, err
		}
	case l.Stage.Kind == sdk.KindRerank && l.Stage.Info.Network:
		return inOrder{}, nil
	}
	return s.launch(ctx, l)
}

// filler is an enricher that adds a context to each passage; its value is the length in tokens.
type filler int

// fillerOf returns the stand-in of an enricher. Only the built-in "context" adds text that prompts
// show.
func fillerOf(asks []knowledge.Asks, s *pipeline.Stage) filler {
	at := slices.IndexFunc(asks, func(a knowledge.Asks) bool { return a.Stage == s })
	if s.Program != nil || s.Use != "context" || at < 0 {
		return 0
	}
	f := EnrichForecast(asks[at])
	if f.Answers == 0 { // the response cache has them
		return additionTokens / 2
	}
	return filler(min(int(f.Likely.OutputTokens)/f.Answers, additionTokens)) // prompts do not show thoughts
}

// Enrich implements sdk.Enricher.
func (f filler) Enrich(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	const word = "context " // two tokens
	all := make([]sdk.Addition, len(passages))
	for i := range all {
		all[i].Context = strings.TrimSpace(strings.Repeat(word, int(f)*sdk.CharactersPerToken/len(word)))
	}
	return all, nil
}

// Fingerprint implements generation.Enricher.
func (filler) Fingerprint() string { return "" }

// inOrder is a reranker that leaves candidates as they are.
type inOrder struct{}

// Rerank implements sdk.Reranker.
func (inOrder) Rerank(_ context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	all := make([][]sdk.Ranked, len(b.Items))
	for i, item := range b.Items {
		for n := range item.Candidates {
			all[i] = append(all[i], sdk.Ranked{Candidate: n, Score: -float32(n)})
		}
	}
	return all, nil
}
