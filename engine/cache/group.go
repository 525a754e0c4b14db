package cache

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/racflow/racflow/sdk"
)

// A group is a record of many values that were made together, so that a file can be indexed
// without being read. It has no key, and its second checksum is that of its directory, with
// which its value begins:
//
//	0  4  number of values
//	4 40  of each: key (32), length (4), CRC-32C (4)
//
// Then come the values.
const memberSize = 40

// encodeGroup makes the bytes of a group and of its members the records, whose offsets count
// from the first of the bytes.
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

// members reads the directory of a group and calls each with its records.
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
