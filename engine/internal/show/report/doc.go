// Package report writes what people read about a file or a run: plans, evaluations,
// comparisons, the results of tuning, generations of knowledge, the answer to one question,
// and a file's stages as a flowchart.
//
// It decides nothing and measures nothing. Package result writes the results of items.
package report
