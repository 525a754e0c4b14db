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

	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk/support"
)

// mends are the delays between attempts to replace a version that can no longer answer.
var mends = support.Backoff{First: time.Second, Max: time.Minute}

// steady is how long a version has to serve before its failure leads to a replacement without delay.
const steady = 5 * time.Minute

// keep protects the searched knowledge from removal, and replaces a version that can no longer
// answer.
func (p *Pipeline) keep() {
	p.set.work.Go(p.hold)
	var tried *version // the version that could not be replaced
	for failures := 0; ; {
		select {
		case <-p.sick:
		case <-p.set.ctx.Done():
			return
		}
		now := p.current()
		if now == nil || !now.sick.Load() {
			continue // the version was replaced meanwhile
		}
		if now != tried && time.Since(now.since) > steady {
			failures = 0
		}
		tried = now
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

// hold protects the searched knowledge from removal.
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

// ail marks a version that can no longer answer, so that keep replaces it.
func (p *Pipeline) ail(v *version) {
	v.sick.Store(true)
	select {
	case p.sick <- struct{}{}:
	default:
	}
}

// examine checks whether a version can still answer, after it has failed on an item.
func (p *Pipeline) examine(v *version) {
	if v.sick.Load() {
		return
	}
	// A stage that stopped because the budget is used up stays stopped.
	if v.Workspace().Failed() != nil || len(v.run.Graph().Halted()) > 0 && v.Workspace().Again() {
		p.ail(v)
	}
}

// lookEvery is the interval for checking the files that a pipeline depends on. Polling, unlike
// notifications of the system, works on every file system and through renames and links, and costs
// one stat per file.
const lookEvery = time.Second

// attachedEvery is the interval for checking collections of other programs, which means asking their servers.
const attachedEvery = 10 * time.Second

// again are the delays before a failed build is repeated. Only builds that failed for a reason other than
// their files are repeated, and builds that failed because of an attached collection, which its owner may
// repair.
var again = support.Backoff{First: 2 * time.Second, Max: time.Minute}

// watch rebuilds the pipeline when a file that it depends on has changed.
func (p *Pipeline) watch() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	w := watcher{pipeline: p}
	for {
		select {
		case now := <-tick.C:
			w.checkFiles(now)
		case <-p.set.ctx.Done():
			return
		}
	}
}

// watcher is the state of watch.
type watcher struct {
	pipeline *Pipeline
	seen     string    // stamp of the files at the previous check
	failures int       // failed builds in a row
	retry    time.Time // when to repeat a failed build; zero: only after a file has changed
	attached time.Time // when the attached collections were last checked
	lost     bool      // the check of the attached collections failed
}

// checkFiles checks the files once. A change counts only if the files have not changed since the
// previous check, so that a file is rarely read while it is being written.
func (w *watcher) checkFiles(now time.Time) {
	p := w.pipeline
	var of depends
	var failure error
	built, theirs := "", false
	p.note(func() { of, built, failure, theirs = p.depends, p.built, p.failure, p.theirs })
	stamp, before := of.stamp(p.set.ctx), w.seen
	w.seen = stamp
	wrong := new(workspace.DiagnosticsError)
	switch { // a build by any caller counts, but a cancelled build has not seen the change
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

// moved checks the attached collections from time to time, and reports whether they have to be
// opened again. A collection that cannot be checked stays open, since it may still answer.
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
	ctx, cancel := context.WithTimeout(w.pipeline.set.ctx, attachedEvery) // a server that hangs must not delay changes of files
	defer cancel()
	moved, err := v.run.Moved(ctx)
	if err != nil && !w.lost && w.pipeline.set.ctx.Err() == nil {
		w.pipeline.set.log.Warn("a collection that is searched could not be looked at", "pipeline", w.pipeline.name, "error", err)
	}
	w.lost = err != nil
	return moved
}

// depends lists the files that a pipeline depends on, from workspace.Pipeline.Depends.
type depends struct {
	files, rows []string
	folders     []document.Set
}

// stamp returns a digest of the names, sizes and times of the files.
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

// contents returns a digest of the contents of the files that are not sources.
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

// note writes the name, size and time of a file.
func note(to io.Writer, path string) {
	info, err := os.Stat(path)
	if err != nil {
		fmt.Fprintf(to, "%q %v\n", path, err)
		return
	}
	fmt.Fprintf(to, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
}
