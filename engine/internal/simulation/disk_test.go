package simulation

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/racflow/racflow/sdk/support"
)

// drive is the disk of a machine: it knows what has been synced.
type drive struct {
	m    *machine
	stop func()

	mu      sync.Mutex
	forced  map[string][]byte // content by path at the last Sync
	names   []name            // renames that are not synced, in order
	room    int               // writes until the disk is full
	full    int               // writes for which it stays full
	refused int               // writes that it refused
	moved   map[string]string // current path of a file that is still open under an earlier name
	holes   bool              // a later part of a write may reach the disk before an earlier one
}

// name is a new name of a file.
type name struct {
	from, to string
	before   []byte // content of to
	existed  bool   // to
}

func watchDrive(m *machine) *drive {
	d := &drive{m: m, forced: map[string][]byte{}, moved: map[string]string{}}
	_ = filepath.WalkDir(m.dir, func(path string, e fs.DirEntry, err error) error { // everything that the machine finds is on the disk
		if err == nil && e.Type().IsRegular() {
			d.forced[path], _ = os.ReadFile(path)
		}
		return err
	})
	d.stop = support.Watch(m.dir, d)
	return d
}

func (d *drive) unwatch() { d.stop() }

// fill makes the disk full for n writes, after some others.
func (d *drive) fill(after, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room, d.full = after, n
}

// put writes a file for somebody who lives longer than the machine.
func (d *drive) put(path string, content []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forced[path] = content
	return os.WriteFile(path, content, 0o600)
}

// Change implements support.Watcher.
func (d *drive) Change(c support.Change, do func(support.Change) error) error {
	d.m.mu.Lock()
	if at := &d.m.deathOn; at.op == c.Op && strings.HasSuffix(c.Path, at.file) {
		if at.n--; at.n == 0 {
			d.m.deathAt = d.m.steps + 1
		}
	}
	if seals := c.Op == support.OpSync || c.Op == support.OpSyncFolder || c.Op == support.OpRename; seals && d.m.deathSeal > 0 {
		if d.m.deathSeal--; d.m.deathSeal == 0 {
			d.m.deathAt = d.m.steps + 1
		}
	}
	dies := !d.m.dead && d.m.steps+1 == d.m.deathAt
	d.m.mu.Unlock()
	if dies && c.Op == support.OpWrite { // dies in the middle of the write
		c.Data = c.Data[:d.m.draw(len(c.Data)+1)]
		_ = do(c)
	}
	if err := d.m.step(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.Op == support.OpWrite && len(c.Data) > 0 && d.full > 0 {
		if d.room--; d.room < 0 {
			d.full--
			d.refused++
			c.Data = c.Data[:d.m.draw(len(c.Data))]
			_ = do(c)
			d.m.fault("full disk", "%s %s", d.m.name, d.short(c.Path))
			return &fs.PathError{Op: "write", Path: c.Path, Err: syscall.ENOSPC}
		}
	}
	var n name
	var before []byte
	var absent error
	switch c.Op {
	case support.OpRename:
		content, err := os.ReadFile(c.To)
		n = name{c.Path, c.To, content, err == nil}
	case support.OpOpen:
		before, absent = os.ReadFile(c.Path)
	}
	if err := do(c); err != nil {
		return err
	}
	if to, ok := d.moved[c.Path]; ok && c.Op != support.OpOpen && c.Op != support.OpRename {
		c.Path = to
	}
	switch c.Op {
	case support.OpOpen:
		delete(d.moved, c.Path)
		if strings.HasSuffix(c.Path, "*") {
			return nil
		}
		if _, known := d.forced[c.Path]; !known {
			d.forced[c.Path] = before
		}
		if errors.Is(absent, fs.ErrNotExist) {
			d.forced[c.Path], d.names = nil, append(d.names, name{to: c.Path})
		}
		return nil
	case support.OpWrite, support.OpTruncate:
		if _, known := d.forced[c.Path]; !known { // a temporary file
			d.forced[c.Path] = nil
		}
		if c.Op == support.OpTruncate { // content before the new end is as safe as before
			if info, err := os.Stat(c.Path); err == nil && info.Size() < int64(len(d.forced[c.Path])) {
				d.forced[c.Path] = d.forced[c.Path][:info.Size()]
			}
		}
		return nil
	case support.OpRename:
		delete(d.forced, c.To)
		d.moved[c.Path] = c.To
		for path, content := range maps.Clone(d.forced) { // the path may be a folder
			if below, ok := strings.CutPrefix(path, c.Path); ok && (below == "" || below[0] == '/') {
				delete(d.forced, path)
				d.forced[c.To+below] = content
			}
		}
		d.names = append(d.names, n)
	case support.OpSync, support.OpSyncFolder:
		if content, err := os.ReadFile(c.Path); err == nil { // false for a folder
			d.forced[c.Path] = content
		}
		var rest []name
		for _, n := range d.names {
			if filepath.Dir(n.to) != filepath.Clean(c.Path) {
				rest = append(rest, n)
			}
		}
		d.names = rest
	}
	d.m.note("%s %s %s %s", d.m.name, c.Op, d.short(c.Path), d.short(c.To))
	return nil
}

func (d *drive) short(path string) string { return strings.TrimPrefix(path, d.m.dir+"/") }

// left returns a folder with what a death leaves on the disk: everything, or, after a power failure,
// what was synced and some of the rest.
func (d *drive) left(power bool) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := filepath.Join(d.m.world.dir, fmt.Sprintf("%s-%d", d.m.name, d.m.draw(1<<30)))
	if err := os.CopyFS(after, os.DirFS(d.m.dir)); err != nil {
		panic(err)
	}
	if !power {
		return after
	}
	at := func(path string) string { return filepath.Join(after, d.short(path)) }
	_ = filepath.WalkDir(d.m.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		now, _ := os.ReadFile(path)
		forced, known := d.forced[path]
		if !known || bytes.Equal(now, forced) {
			return nil // it is synced, or did not come through the seam
		}
		if torn := d.torn(forced, now); !bytes.Equal(torn, now) {
			d.m.note("%s loses %d of %d bytes of %s", d.m.name, len(now)-len(torn), len(now), d.short(path))
			_ = os.WriteFile(at(path), torn, 0o600)
		}
		return nil
	})
	undo := d.m.draw(len(d.names) + 1)
	for i := len(d.names) - 1; i >= undo; i-- {
		n := d.names[i]
		d.m.note("%s loses the name %s", d.m.name, d.short(n.to))
		if n.from == "" {
			_ = os.Remove(at(n.to))
			continue
		}
		_ = os.Rename(at(n.to), at(n.from))
		if n.existed {
			_ = os.WriteFile(at(n.to), n.before, 0o600)
		}
	}
	return after
}

// torn returns what the disk has of a file that was written after its last sync.
func (d *drive) torn(forced, now []byte) []byte {
	if d.holes && bytes.HasPrefix(now, forced) && d.m.one(2) {
		torn, from := bytes.Clone(now), len(forced)+d.m.draw(len(now)-len(forced))
		clear(torn[from : from+d.m.draw(len(now)-from+1)])
		return torn
	}
	switch d.m.draw(4) {
	case 0:
		return now
	case 1:
		return forced
	}
	if !bytes.HasPrefix(now, forced) {
		forced = forced[:0]
	}
	torn := now[:len(forced)+d.m.draw(len(now)-len(forced)+1)]
	if d.m.one(3) { // its size is ahead of its content
		torn = append(torn[:len(torn):len(torn)], make([]byte, len(now)-len(torn))...)
	}
	return torn
}
