package generation

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine/internal/process/disk"
)

// This file reads a collection of the store local as files, to copy it to another machine while processes
// search it and write to it.
//
// A collection is a log and segments, which the log lists; plugins/internal/store/local/format.md describes
// the bytes. Segments never change. The log grows, and only its part up to the last commit counts. So a
// copy has the log up to there, whose bytes stay the same until the next commit, and the segments that this
// part lists.
//
// The file reads no rows and opens no segment: the store checks those.

// LogName is the file of a collection that grows; the others never change.
const LogName = "log"

// FolderName returns the name of a collection's folder.
func FolderName(collection string) string {
	var b strings.Builder
	for i := range len(collection) {
		switch c := collection[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// tries is how often CopyFolder begins anew because a writer has replaced the log meanwhile.
const tries = 10

// CopyFolder copies the files of a collection as of its last commit into a new folder: the log up to there,
// and the segments as links where the file system has those. Later writes to the collection do not change the
// copy. The error is fs.ErrNotExist if nothing was committed, ErrForeign if the folder is something else.
func CopyFolder(collection, to string) (LogCommit, error) {
	for try := 1; ; try++ {
		c, err := attempt(collection, to)
		if !errors.Is(err, errReplaced) || try >= tries {
			return c, err
		}
		if err := os.RemoveAll(to); err != nil {
			return c, err
		}
	}
}

// errReplaced says that segments of a log are gone because another log has replaced it.
var errReplaced = errors.New("its segments are replaced all the time: try again when nobody writes to it")

func attempt(collection, to string) (LogCommit, error) {
	log, err := os.Open(filepath.Join(collection, LogName))
	if err != nil {
		return LogCommit{}, err
	}
	defer log.Close()
	c, err := readLog(log)
	if err != nil {
		return c, err
	}
	if c.End == 0 {
		return c, fmt.Errorf("nothing was committed to %s: %w", collection, fs.ErrNotExist)
	}
	if err := disk.MakeFolder(to); err != nil {
		return c, err
	}
	for _, s := range c.Segments {
		err := link(filepath.Join(collection, s.Name), filepath.Join(to, s.Name), s.Size)
		if errors.Is(err, fs.ErrNotExist) {
			err = errReplaced
		}
		if err != nil {
			return c, fmt.Errorf("collection %s: %w", collection, err)
		}
	}
	return c, write(filepath.Join(to, LogName), io.NewSectionReader(log, 0, c.End))
}

// link links an immutable file to another name, or copies it where links do not work.
func link(from, to string, size int64) error {
	if info, err := os.Stat(from); err != nil {
		return err
	} else if info.Size() != size {
		return fmt.Errorf("%s has %d bytes, not %d: restore it from a copy, or delete its folder and build the knowledge again", from, info.Size(), size)
	}
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return write(to, in)
}

// LinkFile is link without a check of the size.
func LinkFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	return link(from, to, info.Size())
}

func write(to string, from io.Reader) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, disk.FileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	return errors.Join(err, out.Close())
}

// The layout of a log (format.md).
const (
	magic       = "racstore"
	version     = 2
	headerSize  = len(magic) + 4 + 16
	frameHeader = 4 + 1 + 4
	maxPayload  = 1 << 30
	commitMark  = "\xffcommit\n"

	kindCommit = 4
	kindBase   = 5
)

// ErrForeign says that a folder is no collection of the store local.
var ErrForeign = errors.New("no collection of the store local")

// LogCommit is the last commit of a log.
type LogCommit struct {
	End      int64 // offset in the log after the commit, in bytes
	Note     []byte
	Segments []LogSegment
}

// LogSegment is a file that a log lists.
type LogSegment struct {
	Name string // relative to the collection's folder
	Size int64
}

// readLog finds the last commit of an open log. Without a commit, End is 0. Damage ends the log as
// a torn tail does: the store tells them apart when it opens the log.
func readLog(f *os.File) (c LogCommit, err error) {
	info, err := f.Stat()
	if err != nil {
		return c, err
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, info.Size()), 1<<20)
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:len(magic)]) != magic {
		return c, fmt.Errorf("%s: %w", f.Name(), ErrForeign)
	}
	if v := binary.LittleEndian.Uint32(head[len(magic):]); v != version {
		return c, fmt.Errorf("%s has version %d, and this racflow ships version %d: build the knowledge anew", f.Name(), v, version)
	}
	var listed []LogSegment
	at := int64(headerSize)
	for {
		kind, payload, err := readFrame(r, info.Size()-at)
		if err != nil {
			return c, err
		}
		if payload == nil {
			return c, nil
		}
		end := at + frameHeader + int64(len(payload))
		switch kind {
		case kindBase:
			var ok bool
			if listed, ok = readBase(payload); !ok {
				return c, nil
			}
		case kindCommit:
			if len(payload) < 24 || string(payload[:8]) != commitMark || binary.LittleEndian.Uint64(payload[8:]) != uint64(at) {
				return c, nil
			}
			c = LogCommit{End: end, Note: bytes.Clone(payload[24:]), Segments: listed}
		}
		at = end
	}
}

// readFrame returns the next frame of a log that has left bytes to go. payload is nil if no whole
// frame follows.
func readFrame(r io.Reader, left int64) (kind byte, payload []byte, err error) {
	head := make([]byte, frameHeader)
	if left < frameHeader {
		return 0, nil, nil
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, cut(err)
	}
	size := int64(binary.LittleEndian.Uint32(head))
	if size > min(maxPayload, left-frameHeader) {
		return 0, nil, nil
	}
	payload = make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, cut(err)
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	if crc32.Update(crc32.Checksum(head[:5], table), table, payload) != binary.LittleEndian.Uint32(head[5:]) {
		return 0, nil, nil
	}
	return head[4], payload, nil
}

// cut ignores an unexpected end of the log: its writer has just cut off the tail.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// readBase decodes the segments that a base frame lists.
func readBase(b []byte) (all []LogSegment, ok bool) {
	take := func(n uint64) []byte {
		if n > uint64(len(b)) {
			ok = false
			return make([]byte, 40)
		}
		taken := b[:n]
		b = b[n:]
		return taken
	}
	ok = true
	n := binary.LittleEndian.Uint32(take(4))
	for i := uint32(0); i < n && ok; i++ {
		s := take(40)
		name, size, rows, removed := u64(s, 0), u64(s, 1), u64(s, 2), u64(s, 3)
		if removed > 0 && ok {
			take((min(rows, 1<<40) + 63) / 64 * 8)
			take(4 * uint64(binary.LittleEndian.Uint32(take(4))))
		}
		all = append(all, LogSegment{fmt.Sprintf("%016x.segment", name), int64(size)}) // #nosec G115 -- the size of a file
	}
	return all, ok && len(b) == 0
}

func u64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
