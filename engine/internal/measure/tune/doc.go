// Package tune finds the values of a pipeline's variables on a file with known
// labels: from which margin on an item is sure enough not to be sent to a
// language model, and how much each voter counts in the election.
//
// It works on what one run answered in which every voter was asked about every
// item. What would have become of an item had a voter not been asked, or counted more,
// is found by holding the election again (reelect.go), never by a formula of its own.
// Weights are found by the election itself where it learns them from votes, else by a
// search (ascent.go) whose work is bounded.
//
// All figures come from cross-validation (crossval.go): the items are split into
// folds, the variables are found on all folds but one, and what they are worth is counted
// on that one. The threshold is then chosen on that held-out curve; what the choice itself
// is worth is counted by choosing for each fold on the curve of the others (Varma and
// Simon, "Bias in error estimation when using cross-validation for model selection", BMC
// Bioinformatics 7:91, 2006). Weights replace those of the file only where they are better
// beyond chance.
//
// The threshold of the flag rule, with the accuracy that it promises, is for package
// flagging, on rows that nothing here has seen.
//
// It runs no pipeline (package engine does) and reads no pipeline file's text beyond the expressions
// that name variables.
package tune
