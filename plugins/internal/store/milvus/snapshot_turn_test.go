package milvus

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A blob of any size is cut into rows that Milvus takes, and its parts together
// are the content.
func TestNewBlob(t *testing.T) {
	for _, size := range []int{0, 1, partBytes, partBytes + 1, 3 * partBytes} {
		content := bytes.Repeat([]byte{7}, size)
		b, rows := NewBlob(KindNote, 3, content)
		var joined []byte
		for i, key := range b.Keys(KindNote) {
			part, err := base64.StdEncoding.DecodeString(rows[i].Entry.Text)
			if err != nil || rows[i].Key != key || len(rows[i].Entry.Text) > 65535 {
				t.Errorf("%d bytes, row %s: %d bytes, %v", size, rows[i].Key, len(rows[i].Entry.Text), err)
			}
			joined = append(joined, part...)
		}
		if len(rows) != b.Parts || !bytes.Equal(joined, content) {
			t.Errorf("%d bytes: %d rows, %d parts, %d bytes again", size, len(rows), b.Parts, len(joined))
		}
	}
}

// Later statistics replace what earlier ones say, word by word.
func TestDecode(t *testing.T) {
	frequencies := map[uint32]uint32{}
	for _, content := range []map[uint32]uint32{{1: 5, 1 << 31: 6, 9: 1}, {1: 7, 9: 0}} {
		if err := decode(EncodeRecord(content), &frequencies); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[uint32]uint32{1: 7, 1 << 31: 6, 9: 0}, frequencies); diff != "" {
		t.Errorf("frequencies (-want +got):\n%s", diff)
	}
	var numbers []int64
	if err := decode(EncodeRecord([]int64{5, 1 << 62}), &numbers); err != nil || len(numbers) != 2 || numbers[1] != 1<<62 {
		t.Errorf("numbers %v, %v", numbers, err)
	}
	damaged := EncodeRecord(frequencies)
	for _, b := range [][]byte{nil, damaged[:len(damaged)-1], []byte("text")} {
		if err := decode(b, &frequencies); err == nil {
			t.Errorf("%q is decoded", b)
		}
	}
}
