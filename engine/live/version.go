package live

import (
	"context"
	"crypto/rand"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/run"
)

// version is a pipeline as it was when it was opened, with processes of its own.
type version struct {
	*engine.Pipeline
	files   string   // digest of the files that it was read from
	run     *run.Run // nil: not started
	since   time.Time
	holder  string      // of the knowledge, while it is searched
	sick    atomic.Bool // it cannot answer any more, or not all
	closing func(*version)

	mu    sync.Mutex
	users int // requests that are worked on, and one for who serves it
	end   sync.Once
}

// open checks the file of the pipeline, and starts nothing.
func (p *Pipeline) open() (*version, error) {
	var of depends
	var held string
	for first := true; ; first = false {
		stamp, o := of.stamp(p.set.ctx), p.options
		if first { // what it depends on is not known, so it is opened again
			o.Events.Warnings, o.Events.Plugins = nil, nil
		}
		opened, err := engine.Open(p.set.ctx, p.file, o)
		if err != nil {
			return nil, err
		}
		var now depends
		now.files, now.rows, now.folders = opened.Depends()
		holds := now.contents()
		if first || !reflect.DeepEqual(now, of) || holds != held {
			opened.Close()
			of, held = now, holds
			continue
		}
		v := &version{Pipeline: opened, files: holds, holder: rand.Text(), users: 1, closing: p.closing}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.closed {
			opened.Close()
			return nil, errClosed
		}
		p.depends, p.built = of, stamp
		p.versions[v] = true
		return v, nil
	}
}

// start builds the knowledge and starts the stages.
func (v *version) start(ctx context.Context) (err error) {
	if v.run, err = v.Start(ctx); err != nil {
		return err
	}
	v.since = time.Now()
	return v.run.Hold(ctx, v.holder)
}

// same reports whether both answer alike.
func (v *version) same(other *version) bool {
	identity := func(v *version) string {
		return fmt.Sprintf("%s %+v %+v", v.files, v.run.Generations(), v.run.Graph().Identities())
	}
	return identity(v) == identity(other)
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
		go v.close(true) // it takes a moment, and the caller may hold a lock
	}
}

// leaving is how long a version may take to say that it does not need its knowledge any more.
const leaving = 5 * time.Second

// close ends its processes. With drop, knowledge that nobody else serves is removed.
func (v *version) close(drop bool) {
	v.end.Do(func() {
		if v.run != nil {
			ctx, cancel := context.WithTimeout(context.Background(), leaving)
			if err := v.run.Leave(ctx, v.holder, drop); err != nil {
				v.Workspace().Log().Warn("knowledge that is not served any more stays until another build removes it", "error", err)
			}
			cancel()
		}
		v.Close()
		v.closing(v)
	})
}
