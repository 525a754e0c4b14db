// Package report writes texts for people about a file or a run: plans, evaluations, comparisons,
// the results of tuning, generations of knowledge, the answer to one question, and a file's stages
// as a flowchart.
//
// It only writes: it decides and measures nothing. Package output writes the results of items.
package report
