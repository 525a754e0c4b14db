package worker

import "sync"

// parts knows which part of a run is on: a caller that resumes it begins another, and nobody waits for the
// batches of those before any more.
type parts struct {
	mu   sync.Mutex
	now  int
	past chan struct{} // is closed when a later part than now is on
}

// begin says that a part is on, unless a later one is. The channel is closed when that is so.
func (p *parts) begin(part int) (past <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if part < p.now {
		over := make(chan struct{})
		close(over)
		return over
	}
	if part > p.now {
		if p.past != nil {
			close(p.past)
		}
		p.now, p.past = part, make(chan struct{})
	}
	return p.past
}
