package tune

import (
	"context"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/reelect"
	"github.com/racflow/racflow/engine/tune/ascent"
	"github.com/racflow/racflow/engine/tune/crossval"
)

// work is a task that is under way.
type work struct {
	*Task
	folds   crossval.Folds
	all     []int // the items
	counter *eval.Counter
	plain   *reelect.Election // with the weights of the file
	kinds   []*reelect.Ballots
	signals [][]float64    // by item: what the tuned variable is compared with
	search  *ascent.Search // for weights, of all folds; nil: none was needed
}

// begin starts the election with the weights of the file, and prepares the ballots of the
// kinds of elections that weights have to suit: with everything sent and, where a
// threshold is tuned, with nothing sent, because a cascade holds both.
func (w *work) begin(ctx context.Context) (err error) {
	if w.plain, err = w.Election(ctx, nil); err != nil {
		return err
	}
	w.signals = make([][]float64, len(w.Results))
	sent, err := w.plain.Prepare(ctx, w.Results, func(a reelect.Ask) bool {
		if d, ok := w.doubts[a.Stage.Name]; ok && d.variable == w.Variable {
			w.signals[a.Item] = append(w.signals[a.Item], d.of(a.Margin, a.Agreement))
		}
		return true
	})
	if err != nil {
		return err
	}
	if w.kinds = []*reelect.Ballots{sent}; w.Variable == "" {
		return nil
	}
	none, err := w.plain.Prepare(ctx, w.Results, func(a reelect.Ask) bool { return w.asks(a.Stage.Name, a.Margin, a.Agreement, -1) })
	w.kinds = append(w.kinds, none)
	return err
}

// scores says for each item in which kinds of elections its answer is right.
type scores [][]bool

// score holds elections of all kinds over some items.
func (w *work) score(ctx context.Context, e *reelect.Election, items []int) (scores, error) {
	all := make(scores, len(items))
	for _, ballots := range w.kinds {
		results, err := e.Hold(ctx, ballots, items)
		if err != nil {
			return nil, err
		}
		for n, r := range results {
			all[n] = append(all[n], w.counter.Right(r))
		}
	}
	return all, nil
}

// count is in how many kinds of elections an item is right.
func count(right []bool) (n int) {
	for _, r := range right {
		if r {
			n++
		}
	}
	return n
}

// means are the shares of the kinds in which each item is right.
func (s scores) means() []float64 {
	all := make([]float64, len(s))
	for i, right := range s {
		all[i] = float64(count(right)) / float64(len(right))
	}
	return all
}

// sent is the accuracy with everything sent.
func (s scores) sent() float64 {
	n := 0
	for _, right := range s {
		if right[0] {
			n++
		}
	}
	return float64(n) / float64(max(len(s), 1))
}

func (w *work) progress(doing string, done, total int) {
	if w.Progress != nil {
		w.Progress(doing, done, total)
	}
}
