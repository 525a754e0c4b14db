package confident

import (
	"cmp"
	"slices"
)

// Row is a row of the knowledge with what voters say of it that have not seen it.
type Row struct {
	Text, Label string
	Votes       map[string]float64 // by label: its probability; they sum to 1 or less
}

// Suspect is a row whose label is probably wrong.
type Suspect struct {
	Row     int    // among those that were given
	Label   string // that it may have instead: the likeliest
	Share   float64
	Self    float64 // the probability of the label that it has
	Relabel bool    // it is so sure that the label can be replaced
}

// minVoted is what another label must have at least. Where voters know little, they have no
// favourite: they contradict a row's label, and say nothing.
const minVoted = .4

// The bounds of Relabel, chosen on HWU64 and TREC with the hashing embedder: with 5 % of the
// labels swapped, 94 and 97 in 100 of such rows were swapped ones.
const (
	maxSelf  = .02
	minShare = .8
)

// Suspects returns rows whose label is probably wrong, the least likely ones first.
func Suspects(rows []Row) []Suspect {
	thresholds := thresholds(rows)
	wrong := 0 // as the confident joint counts them
	var all []Suspect
	for i, row := range rows {
		best := likeliest(row.Votes, nil)
		if best == "" || best == row.Label {
			continue
		}
		self, share := row.Votes[row.Label], row.Votes[best]
		if confident := likeliest(row.Votes, thresholds); confident != "" && confident != row.Label {
			wrong++
		}
		all = append(all, Suspect{Row: i, Label: best, Share: share, Self: self, Relabel: self < maxSelf && share >= minShare})
	}
	slices.SortFunc(all, func(a, b Suspect) int {
		return cmp.Or(cmp.Compare(a.Self, b.Self), cmp.Compare(b.Share, a.Share), cmp.Compare(a.Row, b.Row))
	})
	return slices.DeleteFunc(all[:wrong], func(s Suspect) bool { return s.Share < minVoted })
}

// thresholds are the labels' mean self-confidences.
func thresholds(rows []Row) map[string]float64 {
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, row := range rows {
		sums[row.Label] += row.Votes[row.Label]
		counts[row.Label]++
	}
	for label := range sums {
		sums[label] /= counts[label]
	}
	return sums
}

// likeliest is the likeliest of the labels that reach their thresholds; empty: none does.
// Without thresholds it is that of all.
func likeliest(votes map[string]float64, thresholds map[string]float64) string {
	best, most := "", 0.
	for label, p := range votes {
		least, known := thresholds[label]
		if thresholds != nil && (!known || p < least) {
			continue
		}
		if p > most || p == most && label < best {
			best, most = label, p
		}
	}
	return best
}
