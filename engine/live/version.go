package live

import (
	"context"
	"sync"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/run"
)

// version is a pipeline as it was when it was opened, with processes of its own.
type version struct {
	*engine.Pipeline
	run   *run.Run // nil: not started
	since time.Time

	mu     sync.Mutex
	users  int // requests that are worked on, and one for who serves it
	ending sync.Once
	ended  func() // is called when its processes have ended
}

// open checks the file of the pipeline, and starts nothing.
func (p *Pipeline) open() (*version, error) {
	opened, err := engine.Open(p.set.ctx, p.file, p.options)
	if err != nil {
		return nil, err
	}
	v := &version{Pipeline: opened, users: 1}
	v.ended = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.versions, v)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		opened.Close()
		return nil, errClosed
	}
	p.versions[v] = true
	return v, nil
}

// start builds the knowledge and starts the stages.
func (v *version) start(ctx context.Context) (err error) {
	if v.run, err = v.Start(ctx); err == nil {
		v.since = time.Now()
	}
	return err
}

// use keeps the version open until done is called as often.
func (v *version) use() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.users++
}

func (v *version) done() {
	v.mu.Lock()
	v.users--
	last := v.users == 0
	v.mu.Unlock()
	if last {
		go v.close() // it takes a moment, and the caller may hold a lock
	}
}

// close ends its processes.
func (v *version) close() {
	v.ending.Do(func() {
		v.Close()
		v.ended()
	})
}
