package local

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/plugins/store/local/internal/image"
	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/plugins/store/local/internal/segment"
	"github.com/racflow/racflow/plugins/store/local/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/local/internal/wal"
)

// writeFile builds a segment in a file of its own. It belongs to nothing until a
// log lists it.
func (c *collection) writeFile(inputs []segment.Input) (*segment.Segment, error) {
	for _, in := range inputs {
		if s, ok := in.Source.(*segment.Segment); ok {
			if err := s.VerifyRest(); err != nil {
				return nil, err
			}
		}
	}
	schema := c.now.Load().Schema
	var random [8]byte
	_, _ = rand.Read(random[:]) // documented never to fail
	name := binary.LittleEndian.Uint64(random[:])
	path := segment.Path(c.dir, name)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = segment.Build(image.NewWriter(f), name, schema.Dimension, schema.Analyzer != "", inputs)
	if err == nil && c.config.Sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		var s *segment.Segment
		if s, err = segment.Open(path); err == nil {
			return s, nil
		}
	}
	_ = os.Remove(path) // the first error is the one to report
	return nil, err
}

// checkpoint puts a new log in the place of the collection's: it lists the
// snapshot's files and has the rows that are in memory. It returns the version
// with the state of that log.
func (c *collection) checkpoint(now wal.State, s *snapshot.Snapshot) (*version, error) {
	a, err := wal.Create(c.path()+".new", now.Schema, c.config.Sync)
	if err != nil {
		return nil, err
	}
	defer a.F.Close()
	base, err := writeLive(a, now, s)
	if err == nil && c.config.Sync {
		err = wal.SyncDir(c.dir) // the names of the files come before that of the log
	}
	if err == nil {
		err = a.Rename(c.path())
	}
	if err != nil {
		if !errors.Is(err, wal.ErrUnsure) {
			_ = os.Remove(a.F.Name()) // the first error is the one to report
		}
		return nil, err
	}
	now.ID, now.Base, now.End, now.Listed = a.ID, base, a.End, pathsOf(s.Parts[:snapshot.Files(s.Parts)])
	return c.version(now, s), nil
}

// writeLive writes what a snapshot has to a new log and returns where its base
// ends.
func writeLive(a *wal.Appender, now wal.State, s *snapshot.Snapshot) (base int64, err error) {
	files := snapshot.Files(s.Parts)
	if files > 0 {
		if err := a.Base(listedOf(s.Parts[:files])); err != nil {
			return 0, err
		}
	}
	base = a.End
	rows := func(yield func(row.Row, []float32) bool) {
		for i := range s.Parts[files:] {
			p := &s.Parts[files+i]
			for r := range p.LiveRows() {
				if !yield(p.Row(r), p.Vector(r)) {
					return
				}
			}
		}
	}
	if err := batches(rows, func(p *row.Batch) error { return a.Change(row.Change{Put: p}) }); err != nil {
		return 0, err
	}
	return base, a.Commit(now.Next, now.Note)
}

// listedOf is how a base lists parts.
func listedOf(parts []snapshot.Part) []wal.Listed {
	all := make([]wal.Listed, len(parts))
	for i := range parts {
		p := &parts[i]
		all[i] = wal.Listed{
			Name: p.Name, Size: uint64(len(p.Bytes)), Rows: uint64(p.Segment.Rows), Removed: uint64(p.Removed),
			Words: uint64(p.Words), Dead: p.Dead, Gone: p.Gone,
		}
	}
	return all
}

// sweep removes the files that no log lists: those of an earlier log, of a
// transaction that was not committed, of a writer that was killed. Readers that
// have them open keep them. The caller has the lock.
func (c *collection) sweep() {
	needed := map[string]bool{}
	for _, path := range c.now.Load().Listed {
		needed[path] = true
	}
	entries, err := os.ReadDir(c.dir)
	for _, e := range entries {
		path := filepath.Join(c.dir, e.Name())
		if needed[path] || !strings.HasSuffix(path, segment.Suffix) && path != c.path()+".new" {
			continue
		}
		if failed := os.Remove(path); !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	if err != nil {
		c.log.Warn("could not remove files that are no longer needed", "collection", c.name, "error", err)
	}
}
