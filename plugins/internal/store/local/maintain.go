package local

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/store/segment"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// writeFile builds a segment in a new file. No collection uses the file until a log lists it.
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
	f, err := support.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = segment.Build(segment.NewImageWriter(f), name, schema.Dimension, schema.Analyzer != "", inputs)
	if err == nil && c.config.Sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		var s *segment.Segment
		if s, err = segment.OpenSegment(path); err == nil {
			return s, nil
		}
	}
	_ = os.Remove(path) // only the first error is reported
	return nil, err
}

// checkpoint replaces the collection's log by a new one, which lists the snapshot's files and contains the rows that
// are in memory. It returns the version with the state of the new log.
func (c *collection) checkpoint(now segment.LogState, s *segment.Snapshot) (*version, error) {
	a, err := segment.CreateLog(c.path()+".new", now.Schema, c.config.Sync)
	if err != nil {
		return nil, err
	}
	defer a.F.Close()
	base, err := writeLive(a, now, s)
	files := s.Parts[:segment.SnapshotFiles(s.Parts)]
	if err == nil && c.config.Sync {
		err = support.SyncFolder(c.dir) // the names of the files must be durable before the log's
	}
	if err == nil {
		err = a.Rename(c.path())
	}
	if err != nil {
		if !errors.Is(err, segment.ErrUnsure) {
			_ = os.Remove(a.F.Name()) // only the first error is reported
		}
		return nil, err
	}
	now.ID, now.Base, now.End, now.Listed = a.ID, base, a.End, pathsOf(files)
	return c.version(now, s), nil
}

// writeLive writes the content of a snapshot to a new log, and returns where the log's base ends.
func writeLive(a *segment.Appender, now segment.LogState, s *segment.Snapshot) (base int64, err error) {
	files := segment.SnapshotFiles(s.Parts)
	if files > 0 {
		if err := a.Base(listedOf(s.Parts[:files])); err != nil {
			return 0, err
		}
	}
	base = a.End
	rows := func(yield func(segment.Row, []float32) bool) {
		for i := range s.Parts[files:] {
			p := &s.Parts[files+i]
			for r := range p.LiveRows() {
				if !yield(p.Row(r), p.Vector(r)) {
					return
				}
			}
		}
	}
	if err := batches(rows, func(p *segment.Batch) error { return a.Change(segment.Change{Put: p}) }); err != nil {
		return 0, err
	}
	return base, a.Commit(now.Next, now.Note)
}

// listedOf converts parts to the form in which a log's base lists them.
func listedOf(parts []segment.Part) []segment.ListedCommit {
	all := make([]segment.ListedCommit, len(parts))
	for i := range parts {
		p := &parts[i]
		all[i] = segment.ListedCommit{
			Name: p.Name, Size: uint64(len(p.Bytes)), Rows: uint64(p.Segment.Rows), Removed: uint64(p.Removed),
			Words: uint64(p.Words), Dead: p.Dead, Gone: p.Gone,
		}
	}
	return all
}

// sweep removes files that the log does not list. An earlier log, an uncommitted transaction or a killed writer left
// them. Readers that have such a file open can still read it. The caller has the lock.
func (c *collection) sweep() {
	needed := map[string]bool{}
	for _, path := range c.now.Load().Listed {
		needed[path] = true
	}
	entries, err := os.ReadDir(c.dir)
	for _, e := range entries {
		path := filepath.Join(c.dir, e.Name())
		if needed[path] || !strings.HasSuffix(path, segment.SegmentSuffix) && path != c.path()+".new" {
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

// Statistics describes the content of a collection.
type Statistics struct {
	Entries   int    `json:"entries"`   // live rows
	Removed   int    `json:"removed"`   // deleted and replaced rows that take space until a merge
	Dimension int    `json:"dimension"` // of the vectors; 0: none
	Analyzer  string `json:"analyzer"`  // of the lexical leg; empty: none
	Segments  int    `json:"segments"`  // in files
	Logged    int    `json:"logged"`    // entries in the log only
	Words     int64  `json:"words"`     // of the entries' texts and contexts
	Labels    int    `json:"labels"`    // distinct labels
	Bytes     int64  `json:"bytes"`     // of all files of the collection
	Note      []byte `json:"-"`         // of the last commit
}

// Compaction is the result of Compact.
type Compaction struct {
	Before, After int64 // bytes of all files of the collection
}

// Location identifies a collection: the folder of the store, and the collection's name.
type Location struct{ Dir, Name string }

// String returns the collection's own folder.
func (l Location) String() string { return filepath.Join(l.Dir, folder(l.Name)) }

// find returns the collections in and below a folder, sorted by path. If the folder is a collection itself, it
// returns that one. The error is fs.ErrNotExist if there is no such folder.
func find(root string) (found []Location, err error) {
	// The separator resolves a root that is a link.
	err = filepath.WalkDir(root+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || !isCollection(path) {
			return err
		}
		dir := filepath.Clean(path)
		if dir == "." { // its name is needed
			if dir, err = filepath.Abs(dir); err != nil {
				return err
			}
		}
		if name, ok := collectionName(filepath.Base(dir)); ok {
			found = append(found, Location{filepath.Dir(dir), name})
		}
		return nil
	})
	return found, err
}

// isCollection reports whether a folder has files of a collection, complete or not. A log alone may belong to
// something else.
func isCollection(dir string) bool {
	if hasSegments(dir) {
		return true
	}
	f, err := os.Open(filepath.Join(dir, "log"))
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = segment.ReadLogHeader(f)
	return err == nil
}

func hasSegments(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), segment.SegmentSuffix) })
}

// collections returns the names of the collections in a folder, sorted. A folder
// that does not exist has none.
func collections(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		name, ok := collectionName(e.Name())
		if !ok {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, e.Name(), "log")); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, err
}

// collectionName is the inverse of folder.
func collectionName(f string) (name string, ok bool) {
	name, err := url.PathUnescape(f)
	return name, err == nil && name != "" && folder(name) == f
}

// stats returns the statistics of a collection at its last commit. The error is fs.ErrNotExist if there is no such
// collection.
func stats(at Location) (Statistics, error) {
	c, err := existing(at)
	if err != nil {
		return Statistics{}, err
	}
	s := c.now.Load()
	defer runtime.KeepAlive(s)
	files := segment.SnapshotFiles(s.Parts)
	found := Statistics{
		Entries: s.Live, Removed: s.Rows - s.Live, Dimension: s.Schema.Dimension, Analyzer: analyzerName(s.Schema.Analyzer),
		Segments: files, Words: s.Words, Note: s.Note,
	}
	labels := map[string]bool{}
	for i := range s.Parts {
		p := &s.Parts[i]
		if i >= files {
			found.Logged += p.Live()
		}
		for r := range p.LiveRows() {
			labels[p.Label(r)] = true
		}
	}
	delete(labels, "") // of entries without a label
	found.Labels = len(labels)
	found.Bytes, err = c.size()
	return found, err
}

// export calls do with every complete entry of a collection, in the order in which they were put. It stops at an
// error of do and returns it.
func export(ctx context.Context, at Location, do func(sdk.Entry) error) error {
	c, err := existing(at)
	if err != nil {
		return err
	}
	s := c.now.Load()
	defer runtime.KeepAlive(s)
	if err := s.VerifyRest(); err != nil {
		return err
	}
	ask := sdk.Scan{Texts: true, Vectors: true}
	for first := true; first || ask.After != ""; first = false {
		page, err := s.Page(ask)
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			if err := errors.Join(ctx.Err(), do(e)); err != nil {
				return err
			}
		}
		ask.After = page.Next
	}
	return nil
}

// check reads the whole collection and compares every checksum. The error lists everything that is wrong; it is
// fs.ErrNotExist if there is no such collection.
func check(ctx context.Context, at Location) error {
	c, err := existing(at)
	if err != nil {
		return err
	}
	s := c.now.Load()
	defer runtime.KeepAlive(s)
	var all []error
	for i := range s.Parts {
		for section := range segment.SectionCount {
			if err := ctx.Err(); err != nil {
				return err
			}
			all = append(all, s.Parts[i].Verify(section))
		}
	}
	return errors.Join(all...)
}

// Compact rewrites a collection without deleted and replaced rows. A collection with files becomes one segment. For
// one without files, Compact only rewrites the log, since a segment of so few rows would be larger. Compact fails
// with a transient error while another process writes; searches continue. It needs as much free space as the entries
// take.
func Compact(ctx context.Context, at Location) (done Compaction, err error) {
	c, err := existing(at)
	if err != nil {
		return done, err
	}
	if done.Before, err = c.size(); err != nil {
		return done, err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := errors.Join(ctx.Err(), c.begin()); err != nil {
		return done, err
	}
	if err := c.compact(); err != nil {
		return done, c.undo(err)
	}
	c.end()
	done.After, err = c.size()
	return done, err
}

// compact does the work of Compact within a transaction that changes nothing.
func (c *collection) compact() error {
	now := c.now.Load()
	parts := now.Parts
	if segment.SnapshotFiles(parts) > 0 && now.Live > 0 {
		s, err := c.writeFile(segment.Inputs(parts))
		if err != nil {
			return err
		}
		parts = []segment.Part{segment.WholeSnapshot(s)}
	}
	next, err := c.checkpoint(now.LogState, now.With(parts))
	if err != nil {
		return err
	}
	c.now.Store(next)
	c.sweep()
	return nil
}

// existing opens an existing collection without changing it.
func existing(at Location) (*collection, error) {
	c := &collection{
		name: at.Name, dir: at.String(), config: config{K1: 1.2, B: 0.75, Sync: true},
		limits: defaultLimits(), log: slog.New(slog.DiscardHandler),
	}
	f, now, err := c.readLog()
	f.Close() // f may be nil; then Close only returns an error
	if err == nil && now.End == 0 {
		err = c.absent()
	}
	if err == nil {
		err = c.refresh(now.Schema)
	}
	return c, err
}

// absent is the error for a collection without a commit: fs.ErrNotExist. If there are segment files, the collection
// did have a commit, since only committed rows are in files, and the error is another one.
func (c *collection) absent() error {
	if hasSegments(c.dir) {
		if _, err := os.Stat(c.path()); errors.Is(err, fs.ErrNotExist) {
			return segment.Damage(c.path(), 0, "it is not there although segments are")
		}
	}
	return fmt.Errorf("nothing was committed to collection %q in %s: %w", c.name, filepath.Dir(c.dir), fs.ErrNotExist)
}

// size returns the bytes of all files of a collection.
func (c *collection) size() (bytes int64, err error) {
	entries, err := os.ReadDir(c.dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // a writer may have removed it
			bytes += info.Size()
		}
	}
	return bytes, err
}

// replay returns the version at a log's last commit, by applying the whole log to an empty snapshot.
func (c *collection) replay(f *os.File, now segment.LogState, empty *segment.Snapshot) (*version, error) {
	changes := segment.NewStaged(nil, empty.Analyzer)
	frames := segment.NewFrameReader(f, int64(segment.LogHeader), now.End)
	for {
		fr, err := frames.Next()
		if err == io.EOF {
			break
		}
		if err == segment.ErrTorn {
			return nil, segment.Damage(f.Name(), frames.Offset, "checksum")
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f.Name(), err)
		}
		if fr.Kind == segment.FrameBase {
			base, ok := segment.DecodeBase(fr.Payload)
			if !ok {
				return nil, segment.Damage(f.Name(), fr.Offset, "unexpected content")
			}
			parts, err := c.openBase(base, now)
			if err != nil {
				return nil, err
			}
			now.Listed = pathsOf(parts)
			changes = segment.NewStaged(parts, empty.Analyzer)
			continue
		}
		one, ok := segment.DecodeChange(fr, now.Schema.Dimension)
		if !ok {
			return nil, segment.Damage(f.Name(), fr.Offset, "unexpected content")
		}
		changes.Apply(one)
	}
	parts, err := empty.Append(changes.Parts.Parts, &changes.Rows)
	if err != nil {
		return nil, err
	}
	return c.version(now, empty.With(parts)), nil
}

// errMissing says that a listed file does not exist: a new log replaced this one and the file was removed, or another
// process removed the file.
var errMissing = errors.New("a segment is missing")

// openBase returns the parts that a base lists.
func (c *collection) openBase(base []segment.ListedCommit, now segment.LogState) ([]segment.Part, error) {
	var parts []segment.Part
	for _, b := range base {
		path := segment.Path(c.dir, b.Name)
		s, err := segment.OpenSegment(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s is not there although %s lists it: restore it from a copy, or delete the collection's folder and build the knowledge again",
				errMissing, path, filepath.Base(c.path()))
		}
		if err != nil {
			return nil, err
		}
		p := segment.Part{Segment: s, Dead: b.Dead, Removed: int(b.Removed), Words: int64(b.Words), Gone: b.Gone}
		switch {
		case uint64(len(s.Bytes)) != b.Size, uint64(s.Rows) != b.Rows, s.Name != b.Name,
			s.Dimension != now.Schema.Dimension, s.Lexical != (now.Schema.Analyzer != ""):
			return nil, segment.Damage(path, 0, "it is another segment than the log lists")
		case b.Dead.Count() != p.Removed, !b.Dead.Within(s.Rows), s.Lexical && p.Removed > 0 && len(p.Gone) != s.Terms.Len(), !s.Lexical && p.Gone != nil:
			return nil, segment.Damage(c.path(), int64(segment.LogHeader), "unexpected content")
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// pathsOf returns the files of parts.
func pathsOf(parts []segment.Part) []string {
	paths := make([]string, len(parts))
	for i := range parts {
		paths[i] = parts[i].Path
	}
	return paths
}
