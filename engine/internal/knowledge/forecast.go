package knowledge

import (
	"context"
	"time"

	"github.com/racflow/racflow/sdk"
)

// Forecast is what a plan expects of a build on this machine, roughly.
type Forecast struct {
	Time   time.Duration // zero: the embedder calls a service, or a few entries take no time
	Memory int64         // bytes of all processes of the run together; zero: a few entries take none
}

// What a build takes beside embedding, as measured with 15,000 to a million rows of ten words: mostly reading,
// comparing, storing and indexing them, and afterwards learning from them.
const (
	entryTime   = 200 * time.Microsecond
	entryMemory = 1100 // bytes, and textCopies of the entry's text
	textCopies  = 4    // the source's, the words of its index, and those on their way
	runMemory   = 350_000_000
	rehearsed   = 32 // texts; of fewer, nothing is foreseen
)

// rehearse embeds the first texts of a plan, to know how fast the embedder is. It embeds them twice: the first time
// counts for nothing, since a model warms up. The embedder may have to learn before it can embed; then that is fast.
func (w *walk) rehearse(ctx context.Context, m batch) {
	for _, e := range m.entries {
		w.textBytes += int64(len(e.Text))
	}
	if w.paced || w.Block.Embed.Info.Network || len(m.entries) < rehearsed {
		return
	}
	w.paced = true
	texts := m.texts()[:rehearsed]
	for range 2 {
		began := time.Now()
		if _, err := w.Embedder.Embed(ctx, sdk.RolePassage, texts); err != nil {
			return
		}
		w.textTime = time.Since(began) / time.Duration(len(texts))
	}
}

// forecast returns what the build of so many new entries takes.
func (w *walk) forecast(fresh int) (f Forecast) {
	if fresh < rehearsed {
		return f
	}
	if !w.Block.Embed.Info.Network {
		f.Time = time.Duration(fresh) * (w.textTime + entryTime)
	}
	f.Memory = runMemory + int64(fresh)*entryMemory + textCopies*w.textBytes
	return f
}
