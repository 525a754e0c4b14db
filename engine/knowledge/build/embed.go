package build

import (
	"context"

	"github.com/racflow/racflow/engine/cache"
	"github.com/racflow/racflow/engine/identity"
	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/pending"
	"github.com/racflow/racflow/sdk"
)

// openVectors opens the vectors of earlier builds, once. An embedder that learns has none: with
// another state, so with each knowledge, it makes others. Nor has one that calls a service:
// the responses are in the response cache, with those to queries.
func (w *walk) openVectors() {
	if w.looked || w.Embedder.Fits() || w.Block.Embed.Info.Network {
		return
	}
	w.looked = true
	made := identity.Stage(w.Block.Embed, w.Embedder) + "\n" + string(w.Origin.Resolved)
	w.vectors = cache.OpenVectors(w.Vectors, made, w.Block.Embed.Use, w.Embedder.Dimension())
}

// embed gives the entries of a batch their vectors, and takes out those that failed
// alone.
func (w *walk) embed(ctx context.Context, m *batch) error {
	if len(m.entries) == 0 {
		return nil
	}
	w.openVectors()
	texts := m.texts()
	vectors := w.vectors.Get(texts)
	var missing []int
	for i, v := range vectors {
		if v == nil {
			missing = append(missing, i)
		}
	}
	w.Report.Reused += len(texts) - len(missing)
	if len(missing) == 0 {
		m.give(vectors, nil)
		return nil
	}
	asked := stages.Pick(texts, missing)
	made, errs, err := w.ask(ctx, asked)
	if err != nil {
		return err
	}
	failed := map[int]bool{}
	for i, n := range missing {
		if vectors[n] = made[i]; errs[i] != nil {
			failed[n], made[i] = true, nil
			w.refused.add(m.entries[n].ID, errs[i])
		}
	}
	w.vectors.Put(asked, made)
	m.give(vectors, failed)
	return nil
}

// ask has the embedder embed texts. What may pass is tried again: one lost reply is not to
// end a build of hours.
func (w *walk) ask(ctx context.Context, texts []string) (vectors [][]float32, errs []error, err error) {
	vectors = make([][]float32, len(texts))
	w.embeds.Later = w.Later.Work("embed."+w.Block.Name, w.Block.Embed, w.Embedder, func(i int) []string { return texts[i : i+1] })
	errs, err = w.embeds.Call(ctx, len(texts), func(ctx context.Context, at []int) error {
		embed := w.Embedder.Embed
		if c, ok := w.Embedder.(sdk.EmbedCollector); ok && pending.Handle(ctx) != "" {
			embed = func(ctx context.Context, role sdk.Role, texts []string) ([][]float32, error) {
				return c.CollectVectors(ctx, pending.Handle(ctx), role, texts)
			}
		}
		found, err := embed(ctx, sdk.RolePassage, stages.Pick(texts, at))
		return stages.Spread(vectors, at, found, err)
	})
	return vectors, errs, err
}

// give gives the entries their vectors, and takes out those that failed.
func (m *batch) give(vectors [][]float32, failed map[int]bool) {
	rest := m.entries[:0:0]
	for i, e := range m.entries {
		if e.Vector = vectors[i]; !failed[i] {
			rest = append(rest, e)
		}
	}
	m.entries = rest
}
