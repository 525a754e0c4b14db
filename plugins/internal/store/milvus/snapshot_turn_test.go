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

func TestState(t *testing.T) {
	want := State{Frequencies: map[uint32]uint32{1: 7, 1 << 31: 6}, Dead: map[int64]bool{5: true, 1 << 62: true}}
	encoded := want.Encode()
	var got State
	if err := got.decode(encoded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, b := range [][]byte{nil, encoded[:len(encoded)-1], []byte("text")} {
		if err := got.decode(b); err == nil {
			t.Errorf("%q is decoded", b)
		}
	}
}
