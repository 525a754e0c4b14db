package explain

import (
	"context"
	"slices"

	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/sdk"
)

// opened is a knowledge as the run searched it.
type opened struct {
	*knowledge.Knowledge
	err    error // why it is gone
	sorted []string
}

// knowledge opens the generation that the run searched. The caller holds mu.
func (r *Run) knowledge(of manifest.Knowledge) (*opened, error) {
	k := r.opened[of.Name]
	if k == nil {
		k = &opened{err: errNoFile}
		if r.pipeline != nil {
			k.Knowledge, k.err = r.pipeline.Reopen(r.ctx, of)
		}
		r.opened[of.Name] = k
	}
	return k, k.err
}

func (k *opened) labels(ctx context.Context) (_ []string, err error) {
	if k.sorted == nil {
		k.sorted, err = k.ReadLabels(ctx)
	}
	return k.sorted, err
}

// searched is the knowledge that a stage searches, or the nearest retrieve stage above it; false: the
// file does not say.
func (r *Run) searched(stage string) (manifest.Knowledge, bool) {
	all := r.journal.Manifest.Knowledge
	if r.pipeline == nil {
		return manifest.Knowledge{}, false
	}
	name := ""
	for _, s := range r.pipeline.Definition().Stages {
		if s.Retrieve != nil && s.Enabled {
			name = s.Retrieve.From.Name
		}
		if s.Block+"."+s.Name == stage {
			break
		}
	}
	at := slices.IndexFunc(all, func(k manifest.Knowledge) bool { return k.Name == name })
	if at < 0 {
		return manifest.Knowledge{}, false
	}
	return all[at], true
}

// look adds the texts of candidates, which are read together.
func (r *Run) look(ctx context.Context, items []*kept) error {
	ids := map[manifest.Knowledge]map[string]sdk.Candidate{}
	for _, k := range items {
		for _, l := range k.Lists {
			of, ok := r.searched(l.Stage)
			if !ok || len(l.found) == 0 {
				continue
			}
			if ids[of] == nil {
				ids[of] = map[string]sdk.Candidate{}
			}
			for i := range l.found {
				ids[of][l.found[i].ID] = sdk.Candidate{}
			}
		}
	}
	for of, texts := range ids {
		k, err := r.knowledge(of)
		if err != nil {
			continue
		}
		wanted := make([]string, 0, len(texts))
		for id := range texts {
			wanted = append(wanted, id)
		}
		slices.Sort(wanted)
		found, err := k.Get(ctx, wanted)
		if err != nil {
			return err
		}
		for i, id := range wanted {
			texts[id] = found[i]
		}
	}
	for _, k := range items {
		for i := range k.Lists {
			if err := r.fill(ctx, k, &k.Lists[i], ids); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill fills in one list.
func (r *Run) fill(ctx context.Context, k *kept, l *List, texts map[manifest.Knowledge]map[string]sdk.Candidate) error {
	if l.Candidates != nil { // those of the result, which have texts
		return nil
	}
	of, ok := r.searched(l.Stage)
	if !ok {
		if r.pipeline != nil {
			k.lose("the texts of %s: the file has no such stage any more, or another knowledge", l.Stage)
		}
		return nil
	}
	searched, err := r.knowledge(of)
	if err != nil {
		if r.pipeline != nil { // else the run says so
			k.lose("the texts of knowledge %q: %v", of.Name, err)
		}
		return nil
	}
	if l.Whole {
		l.found, err = searched.All(ctx)
		return err
	}
	missing := 0
	for i := range l.found {
		c := &l.found[i]
		text := texts[of][c.ID]
		if text.ID == "" {
			missing++
			continue
		}
		text.Score, text.Dense, text.Lexical = c.Score, c.Dense, c.Lexical
		*c = text
	}
	if missing > 0 {
		k.lose("the texts of %d of %d candidates of %s: their entries were removed since", missing, len(l.found), l.Stage)
	}
	return nil
}
