package cache

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/sdk"
)

// lookEvery is the shortest time between two checks for records of other processes.
const lookEvery = time.Second

// Cache is an open folder of cached values. It is safe for concurrent use, and several processes
// may have the same folder open.
type Cache struct {
	dir     string
	layout  *layout
	segment int64 // size in bytes at which a file is full, so that the next record starts another file; 0: none
	log     *slog.Logger

	mu     sync.Mutex
	index  map[sdk.Key]place
	files  map[string]*file // by name
	looked time.Time        // when the folder was last read
	opened int64            // when this cache was opened, in nanoseconds since 1970 as in records
	logged map[string]bool  // files with logged damage

	writing sync.Mutex // taken before mu
	own     *file      // the file that this process writes; nil: none yet
	closed  bool
}

// place locates a record in a file.
type place struct {
	file   *file // nil: the record is damaged
	offset int64
	length uint32
	sum    uint32
	at     int64
}

// Open opens the response cache in a folder, which the first Put creates. It logs damage to log.
func Open(dir string, log *slog.Logger) (*Cache, error) {
	c, err := answers.open(dir, log)
	if err != nil {
		return nil, fmt.Errorf("open the response cache: %w", err)
	}
	return c, nil
}

func (l *layout) open(dir string, log *slog.Logger) (*Cache, error) {
	c := &Cache{dir: dir, layout: l, log: log, index: map[sdk.Key]place{}, files: map[string]*file{}, logged: map[string]bool{}, opened: time.Now().UnixNano()}
	err := disk.TightenFolder(dir)
	if err == nil {
		err = c.readNew()
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Get returns the value that any process last put under a key.
func (c *Cache) Get(key sdk.Key) (value []byte, ok bool) {
	p, ok := c.find(key)
	if !ok {
		return nil, false
	}
	value, err := record{offset: p.offset, length: p.length, sum: p.sum}.read(p.file.in, p.file.path)
	if err == nil {
		c.use(p.file)
		return value, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.index[key] == p {
		c.index[key] = place{at: p.at} // the next record has to be later: other processes read both
	}
	if !c.closed {
		c.report(p.file.path, err)
	}
	return nil, false
}

// use updates the time of a file of vectors, once, to mark the file as used.
func (c *Cache) use(f *file) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.layout.uses && !f.used {
		f.used = true
		_ = os.Chtimes(f.path, time.Time{}, time.Now()) // on failure a trim removes it earlier
	}
}

func (c *Cache) find(key sdk.Key) (place, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.index[key]
	if p.file == nil && time.Since(c.looked) >= lookEvery && !c.closed {
		if err := c.readNew(); err != nil {
			c.report(c.dir, err)
		}
		p = c.index[key]
	}
	return p, p.file != nil
}

// readNew reads the records that other processes have written since the last read. The caller holds
// mu, except in Open.
func (c *Cache) readNew() error {
	c.looked = time.Now()
	entries, err := os.ReadDir(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), c.layout.suffix) {
			continue
		}
		if err := c.follow(e.Name()); err != nil {
			c.report(filepath.Join(c.dir, e.Name()), err)
		}
	}
	return nil
}

// follow indexes the new records of a file.
func (c *Cache) follow(name string) error {
	f := c.files[name]
	if f == nil {
		var err error
		if f, err = c.layout.openFile(filepath.Join(c.dir, name)); errors.Is(err, fs.ErrNotExist) {
			return nil // another process has just cleared the file
		} else if err != nil {
			return err
		}
		c.files[name] = f
	}
	if f.out != nil || f.broken {
		return nil // its records are indexed already, or it is damaged
	}
	return f.follow(c.adder(f))
}

// adder returns a function that indexes records of a file. It ignores a record if the index has a
// later record of the key.
func (c *Cache) adder(f *file) func(record) {
	return func(r record) {
		if have, ok := c.index[r.key]; !ok || r.at >= have.at {
			c.index[r.key] = place{file: f, offset: r.offset, length: r.length, sum: r.sum, at: r.at}
		}
	}
}

// report logs damage once for each file.
func (c *Cache) report(path string, err error) {
	if !c.logged[path] {
		c.logged[path] = true
		c.log.Warn(c.layout.warning, "error", err)
	}
}

// Put stores a value of at most sdk.MaxCached bytes under a key, and replaces an earlier value.
// about describes the value in a few words, such as a stage's name; 44 bytes of it are stored.
func (c *Cache) Put(key sdk.Key, about string, value []byte) error {
	return c.put(key, about, value, true)
}

// Add is like Put, but does nothing if a process has put a value under the key since this cache was
// opened. So among concurrent requests for the same key, the first response stays. Add replaces an
// older value, which the caller has chosen not to use.
func (c *Cache) Add(key sdk.Key, about string, value []byte) error {
	return c.put(key, about, value, false)
}

func (c *Cache) put(key sdk.Key, about string, value []byte, replace bool) error {
	if len(value) > sdk.MaxCached {
		return sdk.Invalid(fmt.Errorf("a response of %d bytes is too large to be cached: at most %d are", len(value), sdk.MaxCached))
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if !c.closed && !replace && c.fresh(key) {
		return nil
	}
	if err := c.write(about, []sdk.Key{key}, [][]byte{value}); err != nil {
		return fmt.Errorf("cache a response: %w", err)
	}
	return nil
}

// write appends records to this process's file, and indexes them. The caller holds writing.
func (c *Cache) write(about string, keys []sdk.Key, values [][]byte) error {
	if c.closed {
		return errors.New("the cache is closed")
	}
	if c.own == nil {
		if err := c.takeFile(); err != nil {
			return err
		}
	}
	b := make([]byte, 0, len(keys)*(headerSize+len(values[0])))
	records := make([]record, len(keys))
	for i, value := range values {
		records[i] = record{
			key: keys[i], at: c.now(keys[i]), about: about,
			offset: int64(len(b)) + headerSize, length: uint32(len(value)), sum: crc32.Checksum(value, castagnoli),
		}
		b = records[i].append(b, value)
	}
	start, err := c.own.append(b)
	if err != nil {
		if c.own.broken {
			c.own = nil // the file could not be repaired: the next record goes to another file
		}
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range records {
		r.offset += start
		c.adder(c.own)(r)
	}
	if c.segment == 0 || c.own.known < c.segment {
		return nil
	}
	full := c.own.out
	c.own.out, c.own = nil, nil // nobody takes over a full file
	return full.Close()
}

// fresh reports whether a record was put under a key since this cache was opened.
func (c *Cache) fresh(key sdk.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.readNew(); err != nil {
		c.report(c.dir, err)
	}
	p := c.index[key]
	return p.file != nil && p.at >= c.opened
}

// now returns a time after all earlier records of a key, even if the clock was set back.
func (c *Cache) now(key sdk.Key) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(time.Now().UnixNano(), c.index[key].at+1)
}

// Close releases the file that this process writes. The cache cannot be used afterwards.
func (c *Cache) Close() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.close())
	}
	c.closed, c.own, c.files, c.index = true, nil, nil, nil
	return errors.Join(errs...)
}
