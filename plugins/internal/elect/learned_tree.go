package elect

import (
	"strconv"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// This file handles labels that are paths in a tree. The election elects among the labels. A node's probability is
// the sum of the probabilities of the labels below it. So a node may be sure where no label is. With the argument
// answer_at, the election descends the tree and takes the likeliest node at each level. The answer is the deepest
// node on this path whose confidence is at least answer_at; if no node reaches it, the answer is the first one.
// Without the argument the answer is the likeliest label.
//
// Sums are overconfident where voters confuse labels across the tree. So each level has its own calibration, fitted
// to the nodes on these paths.

// levelOf is a part of names in the argument calibration, such as "slope of level 1".
const levelOf = " of level "

// levels descends to the likeliest node at each level and returns these nodes with their probabilities. It ends at a
// label that is likelier than each node below it.
func levels(f sdk.LabelForm, labels []string, probabilities []float64) (way []sdk.LabelConfidence) {
	for depth := 0; ; depth++ {
		sums, order, here := map[string]float64{}, []string(nil), 0.0
		for i, label := range labels {
			path := f.Path(label)
			switch {
			case label == "", depth > 0 && (len(path) < depth || path[depth-1] != way[depth-1].Label):
			case len(path) == depth:
				here = probabilities[i]
			default:
				if _, seen := sums[path[depth]]; !seen {
					order = append(order, path[depth])
				}
				sums[path[depth]] += probabilities[i]
			}
		}
		best := ""
		for _, node := range order {
			if best == "" || sums[node] > sums[best]+tie {
				best = node
			}
		}
		if best == "" || here >= sums[best] {
			return way
		}
		way = append(way, sdk.LabelConfidence{Label: best, Confidence: min(sums[best], 1)})
	}
}

// above returns the nodes from the first level down to a label, with their probabilities.
func above(f sdk.LabelForm, label string, labels []string, probabilities []float64) (way []sdk.LabelConfidence) {
	for _, node := range f.Path(label) {
		sum := 0.0
		for i, other := range labels {
			if f.Holds(node, other) {
				sum += probabilities[i]
			}
		}
		way = append(way, sdk.LabelConfidence{Label: node, Confidence: min(sum, 1)})
	}
	return way
}

// level returns the calibration of a level; levels count from 0.
func (m *model) level(n int) calibration {
	if len(m.Levels) == 0 {
		return m.Calibration
	}
	return m.Levels[min(n, len(m.Levels)-1)]
}

// climb replaces the answer by a node of the tree. It uses what r read and elected last.
func (m *model) climb(v *sdk.Verdict, r *reader, f sdk.LabelForm, at float64) {
	if v.Answer == "" {
		return
	}
	way := above(f, v.Answer, r.labels, r.scores)
	if at > 0 {
		way = levels(f, r.labels, r.scores)
	}
	leaf := v.Answer
	for i := len(way) - 1; i >= 0; i-- {
		if way[i].Confidence = m.level(i).confidence(way[i].Confidence); way[i].Label == leaf {
			way[i].Confidence = v.Confidence
		}
		if i < len(way)-1 { // a node is at least as sure as the nodes below it
			way[i].Confidence = max(way[i].Confidence, way[i+1].Confidence)
		}
	}
	v.Labels = way
	if at == 0 {
		return
	}
	answer := 0
	for answer+1 < len(way) && way[answer+1].Confidence >= at {
		answer++
	}
	v.Answer, v.Confidence, v.Agreement = way[answer].Label, way[answer].Confidence, 0
	for label, name := range r.labels {
		if f.Holds(v.Answer, name) {
			v.Agreement += r.agreement(label)
		}
	}
	v.Agreement = min(v.Agreement, 1)
}

// descend records the decision at each level on a row. p.scores holds the row's probabilities.
func (p *problem) descend(r *row) {
	for i, node := range levels(p.form, r.names, p.scores) {
		if i == len(p.levels) {
			p.levels = append(p.levels, nil)
		}
		p.levels[i] = append(p.levels[i], point{logOdds(node.Confidence), p.form.Holds(node.Label, r.label)})
	}
}

// calibrateLevels fits the calibrations of the levels.
func (m *model) calibrateLevels(all []trial) {
	for _, t := range all {
		m.Levels = append(m.Levels, t.calibrated(uncalibrated, smooth))
	}
}

// setLevel sets slope or offset of a level by its name in the argument, such as "slope of level 1". ok is false for
// other names.
func (m *model) setLevel(name string, value float64) (ok bool) {
	what, level, ok := strings.Cut(name, levelOf)
	n, err := strconv.Atoi(level)
	if !ok || err != nil || n < 1 || n > mostLevels || what != "slope" && what != "offset" {
		return false
	}
	for len(m.Levels) < n {
		m.Levels = append(m.Levels, uncalibrated)
	}
	if what == "slope" {
		m.Levels[n-1].Slope = value
	} else {
		m.Levels[n-1].Offset = value
	}
	return true
}

// mostLevels is the highest level in the argument calibration.
const mostLevels = 100
