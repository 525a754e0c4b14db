package journal_test

import (
	"encoding/json"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/journal"
)

// TestShares: each row is in exactly one share, and a share is written as it is read.
func TestShares(t *testing.T) {
	for _, of := range []int{1, 2, 7} {
		for row := range 20 {
			in := 0
			for number := 1; number <= of; number++ {
				if (journal.Share{Number: number, Of: of}).Has(row) {
					in++
				}
			}
			if in != 1 {
				t.Errorf("row %d is in %d of %d shares", row, in, of)
			}
		}
	}
	if whole := (journal.Share{}); whole.IsSet() || !whole.Has(3) {
		t.Error("the whole input lacks a row")
	}
	var s journal.Share
	if err := s.UnmarshalText([]byte("2/3")); err != nil || s != (journal.Share{Number: 2, Of: 3}) || s.String() != "2/3" {
		t.Errorf("%v, %v", s, err)
	}
	if err := s.UnmarshalText([]byte("0/3")); err != nil || s != (journal.Share{Number: 3, Of: 3}) {
		t.Errorf("the last part, counted from 0: %v, %v", s, err)
	}
	for _, bad := range []string{"", "2", "0/0", "4/3", "-1/3", "1/x", "1/3/5"} {
		if err := s.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is a share", bad)
		}
	}
	text, err := json.Marshal(journal.Manifest{Share: s})
	var m journal.Manifest
	if err != nil || json.Unmarshal(text, &m) != nil || m.Share != s {
		t.Errorf("%s is read as %v, %v", text, m.Share, err)
	}
}
