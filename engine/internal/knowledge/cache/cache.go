package cache

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// lookEvery is the shortest time between two looks for records of other processes.
const lookEvery = time.Second

// Cache is an open folder of cached values. It is safe for concurrent use, and several processes
// may have the same folder open.
type Cache struct {
	dir     string
	layout  *layout
	segment int64 // a file of this many bytes is full: the next record begins another one; 0: never
	log     *slog.Logger

	mu     sync.Mutex
	index  map[sdk.Key]place
	files  map[string]*file // by name
	looked time.Time        // when the folder was last read
	opened int64            // when this cache was opened, in nanoseconds since 1970 as in records
	logged map[string]bool  // files whose damage was logged

	writing sync.Mutex // taken before mu
	own     *file      // the file that this process writes; nil: none yet
	closed  bool
}

// place locates a record in a file.
type place struct {
	file   *file
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
		err = c.look()
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
		delete(c.index, key)
	}
	if !c.closed {
		c.report(p.file.path, err)
	}
	return nil, false
}

// use updates the time of a file of vectors, once, to mark it as used.
func (c *Cache) use(f *file) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.layout.groups && !f.used {
		f.used = true
		_ = os.Chtimes(f.path, time.Time{}, time.Now()) // on failure a trim removes it earlier
	}
}

func (c *Cache) find(key sdk.Key) (place, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.index[key]
	if !ok && time.Since(c.looked) >= lookEvery && !c.closed {
		if err := c.look(); err != nil {
			c.report(c.dir, err)
		}
		p, ok = c.index[key]
	}
	return p, ok
}

// look reads the records that other processes have written since the last look. The caller holds
// mu, except in Open.
func (c *Cache) look() error {
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
			return nil // another process has just cleared it
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

// adder returns a function that indexes records of a file, unless the index has a later one of the
// key.
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

// Put stores a value of at most sdk.MaxCached bytes under a key, and replaces an earlier one. about
// describes it in a few words, such as a stage's name; 44 bytes of it are stored.
func (c *Cache) Put(key sdk.Key, about string, value []byte) error {
	return c.put(key, about, value, true)
}

// Add is Put unless a process has put a value under the key since this cache was opened: among
// concurrent requests for the same key, the first response stays. It replaces an older value, which
// the caller has chosen not to use.
func (c *Cache) Add(key sdk.Key, about string, value []byte) error {
	return c.put(key, about, value, false)
}

func (c *Cache) put(key sdk.Key, about string, value []byte, replace bool) error {
	if len(value) > sdk.MaxCached {
		return sdk.Invalid(fmt.Errorf("a response of %d bytes is too large to be cached: at most %d are", len(value), sdk.MaxCached))
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.closed {
		return errors.New("the response cache is closed")
	}
	if !replace && c.fresh(key) {
		return nil
	}
	r := record{key: key, at: c.now(key), about: about, offset: headerSize, length: uint32(len(value)), sum: crc32.Checksum(value, castagnoli)}
	if err := c.write(r.encode(value), r); err != nil {
		return fmt.Errorf("cache a response: %w", err)
	}
	return nil
}

// write appends bytes to this process's file and indexes the records in them, whose offsets count
// from the first of the bytes. The caller holds writing.
func (c *Cache) write(b []byte, records ...record) error {
	if c.own == nil {
		if err := c.takeFile(); err != nil {
			return err
		}
	}
	start, err := c.own.append(b)
	if err != nil {
		if c.own.broken {
			c.own = nil // it could not be repaired: the next record goes to another file
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
	if err := c.look(); err != nil {
		c.report(c.dir, err)
	}
	p, ok := c.index[key]
	return ok && p.at >= c.opened
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

// A group is a record of many values that were made together, so that a file can be indexed without
// reading it all. Its key is empty, and its second checksum covers its directory, with which its
// value begins:
//
//	0  4  number of values
//	4 40  for each: key (32), length (4), CRC-32C (4)
//
// The values follow.
const memberSize = 40

// encodeGroup returns the bytes of a group and the records of its members, whose offsets count from
// the first of the bytes.
func encodeGroup(at int64, about string, keys []sdk.Key, values [][]byte) ([]byte, []record) {
	directory := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+memberSize*len(keys)), uint32(len(keys)))
	records := make([]record, len(keys))
	offset := int64(headerSize + cap(directory))
	for i, value := range values {
		r := record{key: keys[i], at: at, about: about, offset: offset, length: uint32(len(value)), sum: crc32.Checksum(value, castagnoli)}
		directory = append(directory, r.key[:]...)
		directory = binary.LittleEndian.AppendUint32(directory, r.length)
		directory = binary.LittleEndian.AppendUint32(directory, r.sum)
		records[i], offset = r, r.end()
	}
	head := record{at: at, about: about, length: uint32(offset - headerSize), sum: crc32.Checksum(directory, castagnoli)}
	b := make([]byte, 0, offset)
	b = append(append(b, head.encode(nil)...), directory...)
	for _, value := range values {
		b = append(b, value...)
	}
	return b, records
}

// members reads the directory of a group and calls each with the record of each member.
func members(in *bufio.Reader, path string, group record, each func(record)) error {
	wrong := &damage{path, group.begin(), "a wrong checksum"}
	var count [4]byte
	if group.length < uint32(len(count)) {
		return wrong
	}
	if _, err := io.ReadFull(in, count[:]); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(count[:]))
	if int64(len(count))+n*memberSize > int64(group.length) {
		return wrong
	}
	directory := make([]byte, n*memberSize)
	if _, err := io.ReadFull(in, directory); err != nil {
		return err
	}
	if crc32.Update(crc32.Checksum(count[:], castagnoli), castagnoli, directory) != group.sum {
		return wrong
	}
	r := record{at: group.at, about: group.about, offset: group.offset + int64(len(count)) + n*memberSize}
	for entry := range int(n) {
		m := directory[entry*memberSize:]
		r.key = sdk.Key(m[:len(r.key)])
		r.length, r.sum = binary.LittleEndian.Uint32(m[len(r.key):]), binary.LittleEndian.Uint32(m[len(r.key)+4:])
		if r.end() > group.end() {
			return wrong
		}
		each(r)
		r.offset = r.end()
	}
	return nil
}

// hitsFile holds, as a decimal number, how often values were used again.
const hitsFile = "hits"

// CountHits adds n to the count of uses of cached values in a folder. The count is for people only:
// it ignores errors, and processes that end at the same moment may lose some.
func CountHits(dir string, n int64) {
	if n <= 0 {
		return
	}
	f, err := support.OpenLock(filepath.Join(dir, hitsFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(f, "%020d\n", readHits(dir)+n) // in place: the length never changes
	_ = f.Close()
}

// readHits reads the count of CountHits.
func readHits(dir string) int64 {
	text, _ := os.ReadFile(filepath.Join(dir, hitsFile))
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // 0 if unreadable
	return max(n, 0)
}

// forgetHits removes the count from a folder without values.
func forgetHits(dir string) { _ = os.Remove(filepath.Join(dir, hitsFile)) }
