package segment

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, rows := range []int{1, 63, 64, 65, 1000} {
		for _, share := range []float64{0.05, 0.5, 1} {
			var list []uint32
			for row := range uint32(rows) {
				if r.Float64() < share {
					list = append(list, row)
				}
			}
			if len(list) == 0 {
				continue
			}
			terms := &Terms{Lists: Lists{ends: []listEnd{{rows: uint64(len(list))}}, Rows: list}}
			ranks := terms.Ranks(0, rows)
			if want := len(list)*sparseList >= rows; (ranks != nil) != want {
				t.Fatalf("%d of %d rows: ranks %v, want %v", len(list), rows, ranks != nil, want)
			}
			if ranks == nil {
				continue
			}
			for row := range uint32(rows) {
				at, ok := ranks.Find(row)
				if want, found := slices.BinarySearch(list, row); at != want || ok != found {
					t.Fatalf("%d of %d rows: row %d at %d, %v; want %d, %v", len(list), rows, row, at, ok, want, found)
				}
			}
		}
	}
}

// TestRanksOfDamagedLists has rows that are beyond the end or do not rise.
func TestRanksOfDamagedLists(t *testing.T) {
	ranks := newRanks([]uint32{70, 3, 3, 1 << 31, 100}, 100)
	for row := range uint32(100) {
		if at, ok := ranks.Find(row); at > 5 || ok != (row == 3 || row == 70) {
			t.Errorf("row %d at %d, %v", row, at, ok)
		}
	}
}
