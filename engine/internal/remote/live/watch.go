package live

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/knowledge/document"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/sdk/support"
)

// mends are the delays between attempts to replace a version that cannot answer any more.
var mends = support.Backoff{First: time.Second, Max: time.Minute}

// steady is how long a version has to serve well for the next one that is sick to be replaced at once.
const steady = 5 * time.Minute

// keep holds the knowledge that is searched, and replaces a version that cannot answer any more.
func (p *Pipeline) keep() {
	p.set.work.Go(p.hold)
	for failures := 0; ; {
		select {
		case <-p.sick:
		case <-p.set.ctx.Done():
			return
		}
		now := p.current()
		if now == nil || !now.sick.Load() {
			continue // it was replaced meanwhile
		}
		if time.Since(now.since) > steady {
			failures = 0
		}
		if failures > 0 && support.SleepFor(p.set.ctx, mends.Delay(failures)) != nil {
			return
		}
		failures++
		if err := p.Rebuild(p.set.ctx); err != nil && p.set.ctx.Err() == nil {
			p.set.log.Error("a version of the pipeline that cannot answer could not be replaced", "pipeline", p.name, "error", err)
			p.ail(now)
		}
	}
}

// hold keeps the knowledge that is searched from being removed.
func (p *Pipeline) hold() {
	tick := time.NewTicker(generation.HoldEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.holdOnce()
		case <-p.set.ctx.Done():
			return
		}
	}
}

func (p *Pipeline) holdOnce() {
	v, err := p.serving()
	if err != nil {
		return
	}
	defer v.done()
	switch err := v.run.Hold(p.set.ctx, v.holder); {
	case errors.Is(err, generation.ErrRemoved):
		p.set.log.Warn("the knowledge that is searched was removed, and is built again", "pipeline", p.name, "error", err)
		p.ail(v)
	case err != nil && p.set.ctx.Err() == nil:
		p.set.log.Warn("the knowledge that is searched could not be held", "pipeline", p.name, "error", err)
	}
}

func (p *Pipeline) current() *version {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// ail notes that a version cannot answer any more, so that it is replaced.
func (p *Pipeline) ail(v *version) {
	v.sick.Store(true)
	select {
	case p.sick <- struct{}{}:
	default:
	}
}

// examine looks whether a version can still answer, after it has failed on an item.
func (p *Pipeline) examine(v *version) {
	if v.sick.Load() {
		return
	}
	// A stage that had to stop since its budget is spent stays stopped.
	if v.Workspace().Failed() != nil || len(v.run.Graph().Halted()) > 0 && v.Workspace().Again() {
		p.ail(v)
	}
}

// lookEvery is how often the files that a pipeline depends on are looked at. Files are looked at rather
// than announced by the system: that works on every file system, through renames and links, and
// costs a stat for each of them.
const lookEvery = time.Second

// attachedEvery is how often the collections are looked at that another program makes: their servers are asked.
const attachedEvery = 10 * time.Second

// again are the delays after which a build is tried again that failed for another reason than its files,
// or over a collection that somebody else may mend.
var again = support.Backoff{First: 2 * time.Second, Max: time.Minute}

// watch rebuilds the pipeline when a file that it depends on has changed.
func (p *Pipeline) watch() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	w := watcher{pipeline: p}
	for {
		select {
		case now := <-tick.C:
			w.look(now)
		case <-p.set.ctx.Done():
			return
		}
	}
}

// watcher is what watch knows of the files of a pipeline.
type watcher struct {
	pipeline *Pipeline
	seen     string    // their stamp when they were looked at last
	failures int       // of builds, in a row
	retry    time.Time // when a build is tried again; zero: once a file has changed
	attached time.Time // when attached collections were looked at
	lost     bool      // they could not be, then
}

// look looks at the files once. A change counts when nothing has changed since the look before: a file that
// is being written is not read in the middle, most times.
func (w *watcher) look(now time.Time) {
	p := w.pipeline
	var of depends
	var failure error
	built, theirs := "", false
	p.note(func() { of, built, failure, theirs = p.depends, p.built, p.failure, p.theirs })
	stamp, before := of.stamp(p.set.ctx), w.seen
	w.seen = stamp
	wrong := new(engine.DiagnosticsError)
	switch { // a build counts whoever began it: one that a caller gave up has not seen what changed, either
	case failure == nil || errors.As(failure, &wrong) && !theirs:
		w.failures, w.retry = 0, time.Time{}
	case w.retry.IsZero():
		w.failures++
		w.retry = now.Add(again.Delay(w.failures))
	}
	due := !w.retry.IsZero() && !now.Before(w.retry) || w.retry.IsZero() && w.moved(now)
	if !due && (stamp == built || stamp != before) {
		return
	}
	w.retry = time.Time{}
	if err := p.Rebuild(p.set.ctx); err != nil && p.set.ctx.Err() == nil {
		p.set.log.Error("the pipeline could not be rebuilt; what served before serves on", "pipeline", p.name, "error", err)
	}
}

// moved looks at the attached collections that are served, now and then, and reports whether they have to be
// opened anew. One that cannot be looked at stays as it is: what it was attached as may answer still.
func (w *watcher) moved(now time.Time) bool {
	v := w.pipeline.current()
	if v == nil || now.Sub(w.attached) < attachedEvery {
		return false
	}
	w.attached = now
	v, err := w.pipeline.serving()
	if err != nil {
		return false
	}
	defer v.done()
	ctx, cancel := context.WithTimeout(w.pipeline.set.ctx, attachedEvery) // a server that hangs holds up no change of a file
	defer cancel()
	moved, err := v.run.Moved(ctx)
	if err != nil && !w.lost && w.pipeline.set.ctx.Err() == nil {
		w.pipeline.set.log.Warn("a collection that is searched could not be looked at", "pipeline", w.pipeline.name, "error", err)
	}
	w.lost = err != nil
	return moved
}

// depends are the files that a pipeline depends on, as engine.Pipeline.Depends has them.
type depends struct {
	files, rows []string
	folders     []document.Set
}

// stamp is a digest of what the files are like, by names, sizes and times.
func (d depends) stamp(ctx context.Context) string {
	h := sha256.New()
	for _, path := range d.files {
		note(h, path)
	}
	for _, path := range d.rows {
		files, err := source.Files(path)
		fmt.Fprintln(h, err)
		for _, file := range files {
			note(h, file)
		}
	}
	for _, set := range d.folders {
		folder, err := document.Open(set)
		if err != nil {
			fmt.Fprintln(h, err)
			continue
		}
		stamp, err := folder.Stamp(ctx)
		fmt.Fprintln(h, stamp, errors.Join(err, folder.Close()))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// contents is a digest of what the files hold that are no sources.
func (d depends) contents() string {
	h := sha256.New()
	for _, path := range d.files {
		fmt.Fprintf(h, "%q\n", path)
		f, err := os.Open(path)
		if err != nil {
			fmt.Fprintln(h, err)
			continue
		}
		_, err = io.Copy(h, f)
		fmt.Fprintln(h, err, f.Close())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// note writes what a file is like.
func note(to io.Writer, path string) {
	info, err := os.Stat(path)
	if err != nil {
		fmt.Fprintf(to, "%q %v\n", path, err)
		return
	}
	fmt.Fprintf(to, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
}
