package milvus

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A state of any size is cut into rows that Milvus takes, and its parts together
// are the state.
func TestState(t *testing.T) {
	for _, size := range []int{0, 1, partBytes, 3 * partBytes} {
		want := State{Note: bytes.Repeat([]byte{7}, size), Frequencies: map[uint32]uint32{1: 7, 1 << 31: 6}, Dead: map[int64]bool{5: true, 1 << 62: true}}
		rows := want.Rows(3)
		var joined []byte
		for i, key := range stateKeys(3, len(rows)) {
			part, err := base64.StdEncoding.DecodeString(rows[i].Entry.Text)
			if err != nil || rows[i].Key != key || len(rows[i].Entry.Text) > 65535 {
				t.Errorf("%d bytes, row %s: %d bytes, %v", size, rows[i].Key, len(rows[i].Entry.Text), err)
			}
			joined = append(joined, part...)
		}
		var got State
		if err := got.decode(joined); err != nil || len(rows) != len(joined)/partBytes+1 {
			t.Fatalf("%d bytes in %d rows: %v", len(joined), len(rows), err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, b := range [][]byte{nil, joined[:len(joined)-1], []byte("text")} {
			if err := got.decode(b); err == nil {
				t.Errorf("%q is decoded", b)
			}
		}
	}
}
