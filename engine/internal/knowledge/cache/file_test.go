package cache

import (
	"bytes"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/racflow/racflow/sdk"
)

func someRecord(key, about string, value []byte) []byte {
	r := record{key: sdk.KeyOf(key), at: 1, about: about, length: uint32(len(value)), sum: crc32.Checksum(value, castagnoli)}
	return r.append(nil, value)
}

// FuzzScan reads files of any bytes. The records that it finds, written again, are the beginning of
// the file.
func FuzzScan(f *testing.F) {
	one := append([]byte(answers.magic), someRecord("a", "sample.openai", []byte("answer"))...)
	two := append(bytes.Clone(one), someRecord("b", "", nil)...)
	for _, seed := range [][]byte{nil, []byte("rac"), []byte(answers.magic), one, two, two[:len(two)-3], append(bytes.Clone(one), make([]byte, 70)...)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		in := bytes.NewReader(content)
		again := []byte(answers.magic)
		end, err := answers.scan(in, "file", 0, int64(len(content)), func(r record) {
			value := content[r.offset:r.end()]
			if r.begin() != int64(len(again)) {
				t.Fatalf("a record at %d, the last one ended at %d", r.begin(), len(again))
			}
			again = r.append(again, value)
			got, err := r.read(in, "file")
			if sound := crc32.Checksum(value, castagnoli) == r.sum; sound != (err == nil) || sound && !bytes.Equal(got, value) {
				t.Fatalf("read %q, %v of %q", got, err, value)
			}
		})
		var d *damage
		if err != nil && !errors.As(err, &d) {
			t.Fatal(err)
		}
		if end == 0 {
			return // not yet a file of a cache, or none at all
		}
		if end != int64(len(again)) || !bytes.Equal(again, content[:end]) {
			t.Fatalf("%d bytes were read, which are not what was found", end)
		}
	})
}
