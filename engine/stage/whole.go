package stage

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
)

// whole is a knowledge that is given as a whole in place of a search: all items have
// the same candidates, which nothing has scored, and so prompts that begin alike. Both
// are held once.
type whole struct {
	candidates []sdk.Candidate
	once       sync.Once
	digest     string // of these

	mu       sync.Mutex
	texts    map[string]string // of messages that many prompts share
	passages []string          // of the last prompt
}

// maxShared bounds how many texts are held that prompts may share. A stage whose
// prompts share nothing and say that they do would fill the memory.
const maxShared = 16

// readWhole evaluates whether all of a stage's knowledge is given; nil: it is searched.
func (s *stage) readWhole(ctx context.Context) (*whole, error) {
	if s.Retrieve.Whole == nil {
		return nil, nil
	}
	var env rule.Env
	var err error
	if s.Retrieve.Whole.Reads("knowledge") {
		if env.Knowledge, err = s.knowledge.Extent(ctx); err != nil {
			return nil, err
		}
	}
	holds, err := s.Retrieve.Whole.Eval(ctx, &env)
	if err != nil {
		return nil, fmt.Errorf("%s: whole: %w", s, err)
	}
	if !holds {
		return nil, nil
	}
	w := &whole{texts: map[string]string{}}
	if w.candidates, err = s.knowledge.All(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// give is the method of a retrieve stage that gives all of its knowledge, or all but the
// row that the item is.
func (w *whole) give(stage int, others bool) method {
	return func(_ context.Context, records []*Record) error {
		for _, rec := range records {
			all := w.candidates
			if others {
				all = slices.DeleteFunc(slices.Clone(all), func(c sdk.Candidate) bool { return c.ID == rec.id })
			}
			rec.outputs[stage].candidates = all
		}
		return nil
	}
}

// is reports whether candidates are all of the knowledge, as it was given.
func (w *whole) is(candidates []sdk.Candidate) bool {
	return w != nil && len(candidates) > 0 && len(candidates) == len(w.candidates) && &candidates[0] == &w.candidates[0]
}

// abstains reports whether a stage votes on candidates that nothing has scored, so that
// no vote could mean anything: it gets none.
func (s *stage) abstains() bool {
	return s.whole != nil && s.Kind == sdk.KindSample && !s.Info.Reads.Has(sdk.ColumnPrompts)
}

// share lets prompts hold the same texts where theirs are equal: each comes from the
// wire with its own.
func (w *whole) share(prompts []sdk.Prompt) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range prompts {
		if len(w.passages) > 0 && slices.Equal(prompts[i].Passages, w.passages) {
			prompts[i].Passages = w.passages
		} else {
			w.passages = prompts[i].Passages
		}
		messages := prompts[i].Messages
		for j := range messages {
			if !messages[j].Shared {
				continue
			}
			text, ok := w.texts[messages[j].Text]
			if ok {
				messages[j].Text = text
			} else if len(w.texts) < maxShared {
				w.texts[messages[j].Text] = messages[j].Text
			}
		}
	}
}
