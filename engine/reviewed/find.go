package reviewed

import "github.com/racflow/racflow/engine/doctor"

// Decisions are rows by their texts.
type Decisions map[string]Row

// Of makes decisions findable. Of several rows about one text the last one counts; rows that
// only drop others are left out.
func Of(rows []Row) Decisions {
	d := make(Decisions, len(rows))
	for _, r := range rows {
		if !r.Drops() {
			d[doctor.Normal(r.Text)] = r
		}
	}
	return d
}

// Find returns the decision about a text. Texts are compared as racflow doctor compares them
// (doctor.Normal): small and capital letters and white space aside.
func (d Decisions) Find(text string) (Row, bool) {
	if len(d) == 0 {
		return Row{}, false
	}
	r, ok := d[doctor.Normal(text)]
	return r, ok
}
