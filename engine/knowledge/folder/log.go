package folder

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// The layout of a log, as format.md has it.
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

// Commit is the last commit of a log.
type Commit struct {
	End      int64 // where the log ends with it, in bytes
	Note     []byte
	Segments []Segment
}

// Segment is a file that a log lists.
type Segment struct {
	Name string // in the folder
	Size int64
}

// readLog finds the last commit of an open log. Without one End is 0. What is damaged ends the
// log as a torn tail does: the store tells the one from the other when it opens it.
func readLog(f *os.File) (c Commit, err error) {
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
	var listed []Segment
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
			c = Commit{End: end, Note: bytes.Clone(payload[24:]), Segments: listed}
		}
		at = end
	}
}

// readFrame returns the next frame of a log of which so many bytes are left. The payload is nil where
// no whole frame stands there.
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

// cut takes a log that ends early for one whose writer has just cut off its tail.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// readBase returns the segments of a base.
func readBase(b []byte) (all []Segment, ok bool) {
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
		all = append(all, Segment{fmt.Sprintf("%016x.segment", name), int64(size)}) // #nosec G115 -- the size of a file
	}
	return all, ok && len(b) == 0
}

func u64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
