package generation

import (
	"slices"

	"github.com/racflow/racflow/sdk"
)

// This file adds descriptions to the centroids of their labels.
//
// A description counts as several rows of its label: it says in one text what the label means, while
// each row shows one case.

// descriptionWeight is the number of rows that a description counts as.
const descriptionWeight = 2

// Descriptions collects the descriptions among the entries of a generation. The zero value finds none.
type Descriptions struct {
	Of map[string]sdk.Described // by label

	vectors map[string][]float32
}

// Take collects an entry if it is the description of its label, and reports whether it is.
func (d *Descriptions) Take(e sdk.Entry) bool {
	if !IsDescription(e, d.Of) {
		return false
	}
	if d.vectors == nil {
		d.vectors = map[string][]float32{}
	}
	d.vectors[e.Label] = slices.Clone(e.Vector)
	return true
}

// AddTo adds the descriptions to the sums of their labels.
func (d *Descriptions) AddTo(sums LabelSums) {
	for label, v := range d.vectors {
		for range descriptionWeight {
			sums.Add(label, v)
		}
	}
}

// The metadata of a centroid, beside the description as its text.
const (
	metaName   = "name"
	metaAlone  = "alone"
	metaWeight = "weight"
)

// Mark adds to centroids what is known about their labels, so that the generation stores it.
func (d *Descriptions) Mark(centroids []sdk.Entry) []sdk.Entry {
	for i, e := range centroids {
		if is, ok := d.Of[e.Label]; ok {
			centroids[i].Text = is.Text
			centroids[i].Meta = sdk.Meta{metaName: is.Name, metaAlone: is.Alone, metaWeight: float64(descriptionWeight)}
		}
	}
	return centroids
}

// Marked returns what Mark has added to a centroid. ok reports whether it added anything.
func Marked(e sdk.Entry) (d sdk.Described, weight float64, ok bool) {
	if weight, ok = e.Meta[metaWeight].(float64); ok {
		d.Name, _ = e.Meta[metaName].(string)
		d.Alone, _ = e.Meta[metaAlone].(bool)
		d.Text = e.Text
	}
	return d, weight, ok
}
