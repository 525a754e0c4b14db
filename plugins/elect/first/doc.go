// Package first elects the first acceptable answer: voters are asked in the
// order of the file, their samples in the order in which they were drawn, and
// the best accepted answer of the first sample that has one is the verdict. It
// is how retrieval-augmented classification (RAC) decides: one model, asked
// again where its answer is none of the allowed labels, and no answer where it
// never is. `resamples` of a sample block asks again.
//
// Nobody is outvoted, so nothing but the agreement depends on the samples
// behind the first: it is the share of the samples with an accepted answer that
// vote as the verdict says. An accepted answer without a label, if it is the
// first, says that none of the labels fits: the verdict has no answer then.
//
// It does not decide which answers are acceptable: accept rules do.
package first
