// Package report writes what people read of a file and of a run: plans, evaluations,
// comparisons, what tuning found, generations of knowledge, the answer to one question,
// and a file's stages as a flowchart.
//
// It decides nothing and measures nothing. Results of items are package result's.
package report
