package elect

import "testing"

// On labelled rows a voter leads unless the election is certainly no worse; on rows held
// out of the knowledge only where it certainly is.
func TestLeads(t *testing.T) {
	for _, c := range []struct {
		name               string
		rows, gained, lost int // on which the election is right and the voter is not, and the other way round
		labelled, heldOut  bool
	}{
		{"the same answers", 1000, 0, 0, false, false},
		{"few rows that differ", 1000, 20, 20, true, false},
		{"certainly better", 1000, 60, 10, false, false},
		{"certainly worse", 1000, 10, 60, true, true},
		{"worse by chance", 1000, 18, 25, true, false},
		{"as many, of very many", 1_000_000, 20_000, 20_000, false, false},
	} {
		decided, alone := make(trial, c.rows), make([]bool, c.rows)
		for i := range c.gained {
			decided[i].right = true
		}
		for i := range c.lost {
			alone[c.rows-1-i] = true
		}
		if decided.leads(alone, false) != c.labelled || decided.leads(alone, true) != c.heldOut {
			t.Errorf("%s: the voter leads on labelled rows: %v, on rows held out: %v", c.name, decided.leads(alone, false), decided.leads(alone, true))
		}
	}
}
