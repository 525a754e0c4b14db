// Package tune finds the values of a pipeline's variables on a file with known labels: from which
// margin on an item is sure enough not to be sent to a language model, and how much each voter
// counts in the election.
//
// It uses the answers of one run that asked every voter about every item. To find the result of an
// item if a voter had not been asked, or counted more, it holds the election again (reelect.go),
// never by a formula of its own. Weights of voters it finds only for an election that learns them
// from votes, and for "weighted", whose weights are the voters' accuracies.
//
// All figures come from cross-validation (crossval.go): the items are split into folds, the
// variables are found on all folds but one, and measured on that one. The threshold is then chosen
// on that held-out curve; the choice itself is measured by choosing for each fold on the curve of
// the others (Varma and Simon, "Bias in error estimation when using cross-validation for model
// selection", BMC Bioinformatics 7:91, 2006). Weights replace those of the file only if they are
// better beyond chance.
//
// flagging.go finds the threshold of the flag rule, with the accuracy that it promises, on rows that
// nothing else here has seen.
//
// The package runs no pipeline (package engine does) and reads no pipeline file's text beyond the
// expressions that name variables.
package tune
