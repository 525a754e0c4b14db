package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/sdk"
)

var errNoFile = errors.New("the file cannot be loaded as the run did")

// process is a running prompt stage.
type process struct {
	sdk.Prompter
	random *sdk.Draw // nil: the stage uses no random examples
	err    error     // why the stage cannot run
}

// written is how many items a prompt stage gets in one call. It is small, because items include the
// texts of their candidates.
const written = 16

// prompt has the prompt stages write their prompts again, and adds the prompts that the run used to
// the items.
func (r *Run) prompt(ctx context.Context, items []*kept) {
	by := map[string][]*kept{}
	for _, k := range items {
		if k.seen == nil {
			continue
		}
		for stage := range k.seen.Prompts {
			by[stage] = append(by[stage], k)
		}
	}
	stages := slices.Collect(maps.Keys(by))
	slices.SortFunc(stages, func(a, b string) int { return cmp.Or(cmp.Compare(r.position(a), r.position(b)), cmp.Compare(a, b)) })
	for _, stage := range stages {
		for some := range slices.Chunk(by[stage], written) {
			all, failed := r.write(ctx, stage, some)
			for i, k := range some {
				hashes := k.seen.Prompts[stage]
				if failed[i] != nil {
					k.lose("the prompts of %s: %v", stage, failed[i])
					continue
				}
				k.addPrompts(stage, hashes, all[i])
			}
		}
	}
}

// addPrompts adds the prompts whose hashes the run kept for the item.
func (k *kept) addPrompts(stage string, hashes []string, all []sdk.Prompt) {
	of := Prompted{Stage: stage}
	for _, p := range all {
		if !slices.Contains(hashes, journal.Hash(p)) {
			continue
		}
		shown := Prompt{Text: p.Text}
		for _, m := range p.Messages {
			shown.Messages = append(shown.Messages, Message{m.Role, m.Text})
		}
		of.Prompts = append(of.Prompts, shown)
	}
	if len(of.Prompts) > 0 {
		k.Prompts = append(k.Prompts, of)
	}
	if n := len(of.Prompts); n < len(hashes) {
		k.lose("%d of %d prompts of %s: they are not what the stage writes now from these candidates", len(hashes)-n, len(hashes), stage)
	}
}

// write returns the prompts that a stage writes for items, or an error for each item without
// prompts.
func (r *Run) write(ctx context.Context, stage string, items []*kept) ([][]sdk.Prompt, []error) {
	failed := make([]error, len(items))
	lost := func(err error) ([][]sdk.Prompt, []error) {
		for i := range failed {
			failed[i] = err
		}
		return nil, failed
	}
	p := r.prompter(ctx, stage)
	if p.err != nil {
		return lost(p.err)
	}
	batch := sdk.Batch{Items: make([]sdk.Item, len(items))}
	for i, k := range items {
		batch.Items[i] = sdk.Item{ID: k.ID, Text: k.row.Text, Meta: k.row.Meta, Candidates: r.above(stage, k)}
	}
	if of, ok := r.searched(stage); ok {
		searched, err := r.knowledge(of)
		if err == nil {
			batch.Labels, err = searched.labels(ctx)
		}
		if err == nil && p.random != nil {
			names := make([]string, len(items))
			for i, k := range items {
				names[i] = cmp.Or(k.row.ID, k.row.Text)
			}
			var draws [][]sdk.Candidate
			if draws, err = searched.Random(ctx, names, *p.random, false); err == nil {
				for i := range draws {
					batch.Items[i].Random = draws[i]
				}
			}
		}
		if err != nil {
			return lost(err)
		}
	}
	all, err := p.Prompt(ctx, batch)
	var rows sdk.RowErrors
	if err != nil && !errors.As(err, &rows) {
		return lost(err)
	}
	for i := range failed {
		failed[i] = rows[i]
	}
	return all, failed
}

// prompter returns a prompt stage, which it starts only once.
func (r *Run) prompter(ctx context.Context, stage string) *process {
	if p := r.processes[stage]; p != nil {
		return p
	}
	p := &process{err: errNoFile}
	r.processes[stage] = p
	if r.pipeline == nil {
		return p
	}
	started, s, err := r.pipeline.Process(ctx, stage)
	if p.err = err; err != nil {
		return p
	}
	var ok bool
	if p.Prompter, ok = started.(sdk.Prompter); !ok {
		p.err = errors.New("it writes none")
	} else if drawer, ok := started.(sdk.Drawer); ok && s.Info.Reads.Has(sdk.ColumnRandom) {
		draw := drawer.Random()
		p.random = &draw
	}
	return p
}

// above returns the candidates that a prompt stage gets, from the nearest list above it.
func (r *Run) above(stage string, k *kept) []sdk.Candidate {
	var nearest []sdk.Candidate
	for _, l := range k.Lists {
		if r.position(l.Stage) < r.position(stage) {
			nearest = l.found
		}
	}
	return nearest
}

// position returns the index of a stage in the file; a stage that is not in the file comes last.
func (r *Run) position(stage string) int {
	if r.pipeline == nil {
		return 0
	}
	all := r.pipeline.Definition().Stages
	for i, s := range all {
		if s.Block+"."+s.Name == stage {
			return i
		}
	}
	return len(all)
}

// opened is the generation of a knowledge that the run searched.
type opened struct {
	*knowledge.Knowledge
	err    error // why it is missing
	sorted []string
}

// knowledge opens the generation that the run searched. The caller holds r.mu.
func (r *Run) knowledge(of journal.ManifestKnowledge) (*opened, error) {
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

// Nearest embeds texts with the embedder of a knowledge that the run searched. It returns the
// vectors, and the nearest entry of the knowledge for each text (knowledge.Knowledge.Nearest).
func (r *Run) Nearest(ctx context.Context, name string, texts []string) ([][]float32, []sdk.Candidate, error) {
	all := r.journal.Manifest.Knowledge
	at := slices.IndexFunc(all, func(k journal.ManifestKnowledge) bool { return k.Name == name })
	if r.pipeline == nil || at < 0 {
		return nil, nil, fmt.Errorf("knowledge %q: %w", name, errNoFile)
	}
	k, err := r.pipeline.Search(ctx, all[at])
	if err != nil {
		return nil, nil, err
	}
	return k.Nearest(ctx, texts)
}

func (k *opened) labels(ctx context.Context) (_ []string, err error) {
	if k.sorted == nil {
		k.sorted, err = k.ReadLabels(ctx)
	}
	return k.sorted, err
}

// searched returns the knowledge that a stage searches, or that the nearest retrieve stage above it
// searches; false: the file does not say.
func (r *Run) searched(stage string) (journal.ManifestKnowledge, bool) {
	all := r.journal.Manifest.Knowledge
	if r.pipeline == nil {
		return journal.ManifestKnowledge{}, false
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
	at := slices.IndexFunc(all, func(k journal.ManifestKnowledge) bool { return k.Name == name })
	if at < 0 {
		return journal.ManifestKnowledge{}, false
	}
	return all[at], true
}

// addTexts adds the texts of candidates. It reads them in one call for each knowledge.
func (r *Run) addTexts(ctx context.Context, items []*kept) error {
	ids := map[journal.ManifestKnowledge]map[string]sdk.Candidate{}
	for _, k := range items {
		for _, l := range k.Lists {
			of, ok := r.searched(l.Stage)
			if !ok || len(l.found) == 0 || l.Candidates != nil {
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

// fill adds the texts of one list.
func (r *Run) fill(ctx context.Context, k *kept, l *List, texts map[journal.ManifestKnowledge]map[string]sdk.Candidate) error {
	if l.Candidates != nil { // candidates of the result already have texts
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
		if r.pipeline != nil { // otherwise Run.Gone reports it
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
