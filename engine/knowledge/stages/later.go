package stages

import (
	"sync"

	"github.com/racflow/racflow/engine/identity"
	"github.com/racflow/racflow/engine/pending"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/waiting"
)

// Later is the results of a build that come later.
type Later struct {
	Book  *pending.Book     // nil: such results are errors
	Waits *waiting.Reporter // hears what stages wait for; nil: nobody does

	mu   sync.Mutex
	keys []string // of rows whose results are there
}

// Work is the work of a stage on a batch, but for its Call. name is the stage's, as
// "embed.k", and row returns what it sees of a row.
func (l *Later) Work(name string, s *pipeline.Stage, process identity.Process, row func(int) []string) pending.Work {
	stage := identity.Stage(s, process)
	return pending.Work{
		Book: l.Book, Stage: name,
		Key: func(i int) string { return pending.Key(append([]string{stage}, row(i)...)...) },
		Collected: func(_ int, key string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.keys = append(l.keys, key)
		},
	}
}

// Settle forgets the handles of what is there: the build has committed it.
func (l *Later) Settle() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := l.keys
	if l.keys = nil; len(keys) == 0 {
		return nil
	}
	return l.Book.Settle(keys)
}
