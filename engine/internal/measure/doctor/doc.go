// Package doctor looks at what a pipeline knows and is asked, and says what is wrong with it: before
// answers are worse for it, or figures better.
//
// Look reads rows, and returns findings, the most severe first, each with a count, a few rows and
// what to do. Checks of labels and copies need the rows alone. Those of a knowledge's votes
// (confident.go) and of its embedder need stages, which the caller starts. The quick look before
// each run keeps a hash of each text instead of the text, and has only what is certain.
//
// A Proposal is a corrected copy of a knowledge's rows: copies removed, one spelling for each label,
// labels replaced where votes are nearly certain. Each row that was changed, or that a person
// should look at, says why. The original is never written.
package doctor
