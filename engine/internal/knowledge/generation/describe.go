package generation

import (
	"cmp"
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file makes descriptions part of the centroids of their labels.
//
// A description counts as several rows of its label: it says in one text what the label stands for, where
// each row shows one case. How many is learnt from the labels that have rows, too: with each number in
// turn, rows are compared with all centroids, that of their own label made without them, and the number
// with the fewest errors is taken. It has to be better than the usual number by more than one standard
// deviation of that one's errors.

// weights are how many rows a description may count as.
var weights = []float64{1, 2, 4, 8}

const (
	usualWeight = 2
	fewCompared = 30   // rows below which nothing is learnt
	compared    = 1000 // rows at most
	mostNumbers = 5e7  // of all products
)

// Descriptions collects the descriptions among the entries of a generation. The zero value finds none.
type Descriptions struct {
	Of map[string]sdk.Described // by label

	vectors map[string][]float32
	sample  []sampledRow
}

type sampledRow struct {
	rank   uint64
	label  string
	vector []float32
}

// Take takes an entry, and reports whether it is the description of its label.
func (d *Descriptions) Take(e sdk.Entry) bool {
	switch {
	case len(d.Of) == 0 || e.Label == "":
		return false
	case IsDescription(e, d.Of):
		if d.vectors == nil {
			d.vectors = map[string][]float32{}
		}
		d.vectors[e.Label] = slices.Clone(e.Vector)
		return true
	}
	d.sample = append(d.sample, sampledRow{support.StratifiedRank(e.ID), e.Label, slices.Clone(e.Vector)})
	if len(d.sample) >= 2*compared {
		d.lowest(compared)
	}
	return false
}

// lowest leaves the n rows that rank first.
func (d *Descriptions) lowest(n int) {
	slices.SortStableFunc(d.sample, func(a, b sampledRow) int { return cmp.Compare(a.rank, b.rank) })
	d.sample = d.sample[:min(n, len(d.sample))]
}

// AddTo adds the descriptions to the sums of their labels, and returns as how many rows each counts.
func (d *Descriptions) AddTo(sums LabelSums) float64 {
	if len(d.vectors) == 0 {
		return 0
	}
	weight := d.learn(sums)
	for label, v := range d.vectors {
		scaled := make([]float32, len(v))
		for i, x := range v {
			scaled[i] = float32(weight) * x
		}
		sums.Add(label, scaled)
	}
	return weight
}

// learn returns the best weight for rows of labels that are described.
func (d *Descriptions) learn(sums LabelSums) float64 {
	labels := make(map[string]centroidParts, len(sums))
	numbers := 1
	for label, sum := range sums {
		labels[label] = partsOf(sum, d.vectors[label])
		numbers += len(sum)
	}
	for label, v := range d.vectors {
		if sums[label] == nil {
			labels[label] = partsOf(make([]float64, len(v)), v)
			numbers += len(v)
		}
	}
	d.sample = slices.DeleteFunc(d.sample, func(r sampledRow) bool { return d.vectors[r.label] == nil })
	d.lowest(min(compared, int(mostNumbers)/numbers))
	if len(d.sample) < fewCompared {
		return usualWeight
	}
	errors := make([]float64, len(weights))
	for _, row := range d.sample {
		own := labels[row.label].without(row.vector)
		for i, w := range weights {
			mine := own.cosine(row.vector, w)
			for label, parts := range labels {
				if label != row.label && parts.cosine(row.vector, w) > mine {
					errors[i]++
					break
				}
			}
		}
	}
	usual := errors[slices.Index(weights, usualWeight)]
	if best := slices.Min(errors); best+math.Sqrt(usual) < usual {
		return weights[slices.Index(errors, best)]
	}
	return usualWeight
}

// centroidParts are the sum of a label's rows and its description, which may be nil.
type centroidParts struct {
	sum         []float64
	description []float32
	// Products of the two: the squares of their norms, and the dot product.
	rows, text, both float64
}

func partsOf(sum []float64, description []float32) (p centroidParts) {
	p.sum, p.description = sum, description
	for i, x := range sum {
		p.rows += x * x
		if description != nil {
			p.text += float64(description[i]) * float64(description[i])
			p.both += x * float64(description[i])
		}
	}
	return p
}

// without returns the parts without a row.
func (p centroidParts) without(row []float32) centroidParts {
	sum := slices.Clone(p.sum)
	for i, x := range row {
		sum[i] -= float64(x)
	}
	return partsOf(sum, p.description)
}

// cosine returns that of a vector and the centroid, but for the vector's norm.
func (p centroidParts) cosine(vector []float32, weight float64) float64 {
	dot := 0.0
	for i, x := range vector {
		dot += float64(x) * p.sum[i]
	}
	if p.description != nil {
		dot += weight * Dot(vector, p.description)
	}
	return dot / math.Sqrt(max(p.rows+2*weight*p.both+weight*weight*p.text, 1e-12))
}

// The metadata of a centroid, beside the description as its text.
const (
	metaName   = "name"
	metaAlone  = "alone"
	metaWeight = "weight"
)

// Mark adds to centroids what is said of their labels, so that it is kept with the generation.
func (d *Descriptions) Mark(centroids []sdk.Entry, weight float64) []sdk.Entry {
	for i, e := range centroids {
		if is, ok := d.Of[e.Label]; ok {
			centroids[i].Text = is.Text
			centroids[i].Meta = sdk.Meta{metaName: is.Name, metaAlone: is.Alone, metaWeight: weight}
		}
	}
	return centroids
}

// Marked returns what Mark has added to a centroid; ok: something is said of its label.
func Marked(e sdk.Entry) (d sdk.Described, weight float64, ok bool) {
	if weight, ok = e.Meta[metaWeight].(float64); ok {
		d.Name, _ = e.Meta[metaName].(string)
		d.Alone, _ = e.Meta[metaAlone].(bool)
		d.Text = e.Text
	}
	return d, weight, ok
}
