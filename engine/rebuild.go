package engine

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/cache"
	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Rebuilt is what a run saw of an item, found again by what its journal has of it.
type Rebuilt struct {
	// Candidates are those of the last retrieve or rerank stage, with the texts of the
	// generation that the run searched. One that it does not have any more has no text.
	Candidates []sdk.Candidate
	// Prompts are those of each prompt stage, written again, whose hash is that of a prompt of
	// the run: letter by letter what the models were given.
	Prompts map[string][]sdk.Prompt
	// Replies are what the response cache has of each voter's services, as the voter put it
	// there.
	Replies map[string][]string
	Gone    []string // what is not there any more, and why: sentences
}

func (r *Rebuilt) gone(format string, args ...any) {
	r.Gone = append(r.Gone, fmt.Sprintf(format, args...))
}

// Rebuild finds again what a run of the pipeline saw of an item. It builds no knowledge and calls
// no service. What cannot be found is no error.
func (p *Pipeline) Rebuild(ctx context.Context, m manifest.Manifest, item journal.Item) (*Rebuilt, error) {
	r := &Rebuilt{Prompts: map[string][]sdk.Prompt{}, Replies: map[string][]string{}}
	if item.Seen == nil {
		return r, nil
	}
	var last *knowledge.Knowledge // that the run searched
	for _, of := range m.Knowledge {
		k, err := p.reopen(ctx, of)
		if err != nil {
			r.gone("the texts of knowledge %q: %v", of.Name, err)
			continue
		}
		if last = k; len(item.Seen.Candidates) > 0 {
			if err := r.look(ctx, k, item.Seen.Candidates); err != nil {
				return nil, err
			}
		}
	}
	if r.Candidates == nil {
		for _, c := range item.Seen.Candidates {
			r.Candidates = append(r.Candidates, sdk.Candidate{ID: c.ID, Score: c.Score, Dense: sdk.Unscored, Lexical: sdk.Unscored})
		}
	}
	for stage, hashes := range item.Seen.Prompts {
		p.prompts(ctx, stage, hashes, item, last, r)
	}
	if err := p.workspace.replies(m, item.Seen.Requests, r); err != nil {
		return nil, err
	}
	slices.Sort(r.Gone)
	return r, ctx.Err()
}

// reopen opens the generation that a run searched.
func (p *Pipeline) reopen(ctx context.Context, of manifest.Knowledge) (*knowledge.Knowledge, error) {
	at := slices.IndexFunc(p.file.Knowledge, func(b *pipeline.Knowledge) bool { return b.Name == of.Name })
	if at < 0 {
		return nil, errors.New("the file has no such block any more")
	}
	block := p.file.Knowledge[at]
	store, err := launch.Knowledge(block, p.launch).Store(ctx)
	if err != nil {
		return nil, p.explain(err)
	}
	return knowledge.Reopen(ctx, block, store, of.Collection, of.Content)
}

// look adds the candidates that a knowledge has, with texts.
func (r *Rebuilt) look(ctx context.Context, k *knowledge.Knowledge, seen []journal.Scored) error {
	all, err := k.All(ctx)
	if err != nil {
		return err
	}
	at := map[string]int{}
	for i := range all {
		at[all[i].ID] = i
	}
	missing := 0
	found := make([]sdk.Candidate, len(seen))
	for i, c := range seen {
		found[i] = sdk.Candidate{ID: c.ID, Dense: sdk.Unscored, Lexical: sdk.Unscored}
		if n, ok := at[c.ID]; ok {
			found[i] = all[n]
		} else {
			missing++
		}
		found[i].Score = c.Score
	}
	if missing < len(seen) { // else they are of another knowledge
		r.Candidates = found
	}
	if missing > 0 && missing < len(seen) {
		r.gone("the texts of %d of %d candidates: their entries were removed since", missing, len(seen))
	}
	return nil
}

// prompts has a prompt stage write its prompts again, and keeps those that a run had.
func (p *Pipeline) prompts(ctx context.Context, name string, hashes []string, item journal.Item, searched *knowledge.Knowledge, r *Rebuilt) {
	s := p.stages()[name]
	if s == nil || s.Kind != sdk.KindPrompt {
		r.gone("the prompts of %s: the file has no such stage any more", name)
		return
	}
	process, err := p.launch(ctx, launch.Request{Stage: s})
	if err != nil {
		r.gone("the prompts of %s: %v", name, p.explain(err))
		return
	}
	prompter, ok := process.(sdk.Prompter)
	if !ok {
		r.gone("the prompts of %s: %q writes none", name, s.Use)
		return
	}
	batch := sdk.Batch{Items: []sdk.Item{{ID: item.Result.ID, Text: item.Row.Text, Meta: item.Row.Meta, Candidates: r.Candidates}}}
	if searched != nil {
		batch.Labels = searched.Labels
	}
	if drawer, ok := process.(sdk.Drawer); ok && searched != nil && s.Info.Reads.Has(sdk.ColumnRandom) {
		name := cmp.Or(item.Row.ID, item.Row.Text)
		draws, err := searched.Random(ctx, []string{name}, drawer.Random(), false)
		if err != nil {
			r.gone("the prompts of %s: %v", name, err)
			return
		}
		batch.Items[0].Random = draws[0]
	}
	written, err := prompter.Prompt(ctx, batch)
	if err != nil {
		r.gone("the prompts of %s: %v", name, err)
		return
	}
	for _, prompt := range slices.Concat(written...) {
		if slices.Contains(hashes, journal.Hash(prompt)) {
			r.Prompts[name] = append(r.Prompts[name], prompt)
		}
	}
	if n := len(r.Prompts[name]); n < len(hashes) {
		r.gone("%d of %d prompts of %s: they are not what the stage writes now from these candidates", len(hashes)-n, len(hashes), name)
	}
}

// replies looks up what services replied.
func (w *Workspace) replies(m manifest.Manifest, requests map[string][]string, r *Rebuilt) error {
	if len(requests) == 0 {
		return nil
	}
	kept, err := cache.Open(filepath.Join(w.state, CacheFolder), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer kept.Close() //nolint:errcheck // it was only read
	for voter, keys := range requests {
		missing := 0
		for _, text := range keys {
			reply, ok := replyTo(kept, m, voter, text)
			if !ok {
				missing++
				continue
			}
			r.Replies[voter] = append(r.Replies[voter], reply)
		}
		if missing > 0 {
			r.gone("%d of %d replies to sample.%s: the response cache does not have them any more", missing, len(keys), voter)
		}
	}
	return nil
}

// replyTo looks up one reply, of the voter or of one of its fallbacks.
func replyTo(kept *cache.Cache, m manifest.Manifest, voter, key string) (string, bool) {
	var k sdk.Key
	if n, err := hex.Decode(k[:], []byte(key)); err != nil || n != len(k) {
		return "", false
	}
	for _, s := range m.Stages {
		if name, _, _ := strings.Cut(s.Stage, ", "); name != "sample."+voter {
			continue
		}
		if value, ok := kept.Get(governor.KeyOf(sdk.KindSample, s.Use, k)); ok {
			return string(value), true
		}
	}
	return "", false
}
