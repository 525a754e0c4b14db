// Package crossval chooses among values by cross-validation, and says whether the choice
// is better than what was there before by more than chance.
//
// Items are split into folds; items with the same text share one. A value is chosen on
// all folds but one and scored on that one, for each fold in turn, so that no item is
// scored under a choice that it took part in (Stone, "Cross-validatory choice and
// assessment of statistical predictions", Journal of the Royal Statistical Society B
// 36:111-147, 1974).
//
// It does not know what a value is, or what a score measures.
package crossval
