package local

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// writeFile builds a segment in a file of its own. It belongs to nothing until a
// log lists it.
func (c *collection) writeFile(inputs []input) (*segment, error) {
	for _, in := range inputs {
		if s, ok := in.source.(*segment); ok {
			if err := s.verifyRest(); err != nil {
				return nil, err
			}
		}
	}
	schema := c.now.Load().schema
	var random [8]byte
	_, _ = rand.Read(random[:]) // documented never to fail
	name := binary.LittleEndian.Uint64(random[:])
	path := segmentPath(c.dir, name)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = build(newImageWriter(f), name, schema.Dimension, schema.Analyzer != "", inputs)
	if err == nil && c.config.Sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		var s *segment
		if s, err = openSegment(path); err == nil {
			return s, nil
		}
	}
	_ = os.Remove(path) // the first error is the one to tell
	return nil, err
}

// checkpoint puts a new log in the place of the collection's: it lists the
// snapshot's files and has the rows that are in memory. It returns the snapshot
// with the state of that log.
func (c *collection) checkpoint(s *snapshot) (*snapshot, error) {
	a, err := createLog(c.path()+".new", s.schema, c.config.Sync)
	if err != nil {
		return nil, err
	}
	defer a.f.Close()
	base, err := c.writeLiving(a, s)
	if err == nil && c.config.Sync {
		err = syncDir(c.dir) // the names of the files come before that of the log
	}
	if err == nil {
		err = a.rename(c.path())
	}
	if err != nil {
		if !errors.Is(err, errUnsure) {
			_ = os.Remove(a.f.Name()) // the first error is the one to tell
		}
		return nil, err
	}
	now := s.state
	now.id, now.base, now.end, now.listed = a.id, base, a.end, pathsOf(s.parts[:filesOf(s.parts)])
	return s.with(now, s.parts), nil
}

// writeLiving writes what a snapshot has to a new log and tells where its base
// ends.
func (c *collection) writeLiving(a *appender, s *snapshot) (base int64, err error) {
	files := filesOf(s.parts)
	if files > 0 {
		if _, err := a.append(kindBase, func(b []byte) []byte { return appendBase(b, s.parts[:files]) }); err != nil {
			return 0, err
		}
	}
	base = a.end
	p, size := &batch{}, int64(0)
	put := func() error {
		_, err := a.append(kindPut, func(b []byte) []byte { return appendPut(b, p) })
		p, size = &batch{}, 0
		return err
	}
	for i := range s.parts[files:] {
		part := &s.parts[files+i]
		for r := range int32(part.segment.rows) {
			if part.dead.has(r) {
				continue
			}
			row := part.row(r)
			p.rows, p.vectors = append(p.rows, row), append(p.vectors, part.vector(r)...)
			if size += row.size(part.dimension); size >= frameBytes {
				if err := put(); err != nil {
					return 0, err
				}
			}
		}
	}
	if len(p.rows) > 0 {
		if err := put(); err != nil {
			return 0, err
		}
	}
	return base, a.commit(s.next, s.note)
}

// sweep removes the files that no log lists: those of an earlier log, of a
// transaction that was not committed, of a writer that was killed. Readers that
// have them open keep them. The caller has the lock.
func (c *collection) sweep() {
	needed := map[string]bool{}
	for _, path := range c.now.Load().listed {
		needed[path] = true
	}
	entries, err := os.ReadDir(c.dir)
	for _, e := range entries {
		path := filepath.Join(c.dir, e.Name())
		if needed[path] || !strings.HasSuffix(path, segmentSuffix) && path != c.path()+".new" {
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
