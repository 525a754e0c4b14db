package reviewed

import "github.com/racflow/racflow/engine/doctor"

// Decisions are rows by their texts.
type Decisions map[string]Row

// Of makes decisions findable. What was decided about a text counts more than a row of another
// source that was given this text; of several such rows the last one counts. Rows that only drop
// others are left out.
func Of(rows []Row) Decisions {
	d := make(Decisions, len(rows))
	for _, r := range rows {
		text := doctor.Normal(r.Text)
		if before, known := d[text]; !r.Drops() && (!known || r.Replaces == "" || before.Replaces != "") {
			d[text] = r
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
