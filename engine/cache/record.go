package cache

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/racflow/racflow/sdk"
)

// A file begins with the magic of its format. Then come records: a header and a value each.
// Numbers are little-endian.
//
//	 0  4  CRC-32C of the rest of the header
//	 4  4  length of the value
//	 8  4  CRC-32C of the value
//	12  8  when it was written, in nanoseconds since 1970
//	20 32  key
//	52 44  what it is, in a few words, padded with zeros
const (
	headerSize = 96
	aboutAt    = 52
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is the place of a value, with its header.
type record struct {
	key    sdk.Key
	at     int64 // nanoseconds since 1970
	about  string
	offset int64 // of the value
	length uint32
	sum    uint32 // of the value
}

func (r record) end() int64 { return r.offset + int64(r.length) }

// begin is where the record itself begins.
func (r record) begin() int64 { return r.offset - headerSize }

// encode makes the bytes of a record.
func (r record) encode(value []byte) []byte {
	b := make([]byte, headerSize, headerSize+len(value))
	binary.LittleEndian.PutUint32(b[4:], r.length)
	binary.LittleEndian.PutUint32(b[8:], r.sum)
	binary.LittleEndian.PutUint64(b[12:], uint64(r.at))
	copy(b[20:], r.key[:])
	copy(b[aboutAt:], r.about) // cut to its field
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return append(b, value...)
}

// damage is the error of a file whose content is not what was written.
type damage struct {
	path   string
	offset int64
	what   string
}

func (d *damage) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d (%s)", d.path, d.offset, d.what)
}

// scan calls each with the complete records of a file of the given size, from an offset on,
// and returns the offset of the next one. An incomplete record ends it without an error;
// anything else is damage. It does not read values. Of a group, each gets the members.
func (l *layout) scan(f io.ReaderAt, path string, from, size int64, each func(record)) (int64, error) {
	if from == 0 {
		head := make([]byte, min(size, int64(len(l.magic))))
		if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if string(head) != l.magic[:len(head)] {
			return 0, &damage{path, 0, "not a file of this cache, or one of a newer racflow"}
		}
		if len(head) < len(l.magic) {
			return 0, nil // its first line is incomplete
		}
		from = int64(len(l.magic))
	}
	in := bufio.NewReaderSize(io.NewSectionReader(f, from, size-from), 64<<10)
	header := make([]byte, headerSize)
	for size-from >= headerSize {
		if _, err := io.ReadFull(in, header); err != nil {
			return from, cutOff(err)
		}
		r := record{
			length: binary.LittleEndian.Uint32(header[4:]), sum: binary.LittleEndian.Uint32(header[8:]),
			at: int64(binary.LittleEndian.Uint64(header[12:])), key: sdk.Key(header[20:aboutAt]),
			about: string(bytes.TrimRight(header[aboutAt:], "\x00")), offset: from + headerSize,
		}
		if crc32.Checksum(header[4:], castagnoli) != binary.LittleEndian.Uint32(header) {
			return from, &damage{path, from, "a wrong checksum"}
		}
		if r.end() > size {
			break
		}
		if l.groups {
			if err := members(in, path, r, each); err != nil {
				return from, cutOff(err)
			}
			in.Reset(io.NewSectionReader(f, r.end(), size-r.end())) // the values are skipped, not read
		} else {
			if _, err := in.Discard(int(r.length)); err != nil {
				return from, cutOff(err)
			}
			each(r)
		}
		from = r.end()
	}
	return from, nil
}

// cutOff ignores the end of a file that was truncated meanwhile.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// read reads and checks a record's value.
func (r record) read(f io.ReaderAt, path string) ([]byte, error) {
	value := make([]byte, r.length)
	if n, err := f.ReadAt(value, r.offset); n < len(value) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if crc32.Checksum(value, castagnoli) != r.sum {
		return nil, &damage{path, r.offset, "a wrong checksum"}
	}
	return value, nil
}
