// Package tune finds the values of a pipeline's variables on a file with known labels: the
// threshold of the margin below which an item is sent to a language model, and the weight of each
// voter in the election.
//
// The package uses the answers of one run that asked every voter about every item. To find the
// result without a voter, or with another weight, it holds the election again (reelect.go) and uses
// no formula of its own. It finds weights only for an election that learns them from votes, and for
// the election "weighted", whose weights are the voters' accuracies.
//
// All figures come from cross-validation (crossval.go): the items are split into folds; the
// variables are found on all folds but one, and measured on the remaining fold. The threshold is
// then chosen on the curve of the held-out results. To measure the choice itself, a threshold is
// chosen for each fold on the curve of the other folds (Varma and Simon, "Bias in error estimation
// when using cross-validation for model selection", BMC Bioinformatics 7:91, 2006). Found weights
// replace the weights of the file only if they are better by more than chance.
//
// flagging.go finds the threshold of the flag rule, and the accuracy that it guarantees, on rows
// that served no other purpose in tuning.
//
// The package runs no pipeline (package workspace does). Of a pipeline file's text, it reads only the
// expressions that name variables.
package tune
