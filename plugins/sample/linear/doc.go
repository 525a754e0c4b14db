// Package linear is a voter: a multinomial logistic regression over the knowledge's
// vectors, with the words and letters of the texts beside them.
//
// The weight of a label is its probability, softmax(W·x) over all labels. The input x is
// the vector as the embedder gave it, the constant 1, and hashed TF-IDF features of words,
// word bigrams and character n-grams (those of the hashing embedder), divided by their
// length and scaled to .7: what a sentence encoder takes for the same, such as numbers and
// names, tells labels apart here. Features are signed and hashed into buckets (Weinberger
// et al., "Feature hashing for large scale multitask learning", 2009). Buckets that one
// text alone has are not used, and of a text only its 256 strongest features and first
// 2,048 bytes.
//
// Fit minimises the mean negative log-likelihood with a ridge penalty by L-BFGS (Liu and
// Nocedal, "On the limited memory BFGS method for large scale optimization", 1989) from
// zeros, in 40 evaluations; stopping early regularises, too. The strength of the penalty is
// one of three, by three-fold cross-validation on at most 2,000 rows: the strongest whose
// error is within one standard error of the smallest (Breiman et al., "Classification and
// Regression Trees", 1984).
//
// A penalty that is good for the answers leaves their probabilities too low where
// examples are few. Scores are therefore multiplied by a factor before the softmax, which
// changes no answer (temperature scaling: Guo et al., "On calibration of modern neural
// networks", 2017). It is the one that makes the labels of the rows that
// cross-validation held out likeliest, with Platt's correction for few rows
// ("Probabilistic outputs for support vector machines", 1999), times the square root of
// how much wider the scores of those models spread than the final model's. That root
// stands between two assumptions: 1 would be right if the final model, which learns from
// more rows, were as timid as those; the whole ratio, if it knew no more. It was chosen
// on six public sets, and subsets of them, where the best factor lay near it.
//
// # Bounds
//
// Rows without a label or a vector are left out. At most max_rows rows are learnt from,
// fewer where their vectors would take more than 256 MiB, or their probabilities more than
// 128 MiB: 33 rows for each of 1,000 labels. Of more rows each label has those that come
// first by a hash of their id, as many for each as the bound allows, so that small labels
// stay whole; more labels than rows that fit are an error. Memory is bounded by that, and
// by sixteen times the weights: labels times features and dimensions, 4 bytes each.
//
// Of vectors that are mostly 0, as those of the embedder hashing, only the other numbers are
// kept and multiplied, to the same bits.
//
// Nothing depends on the clock, on the number of threads or on the order of rows: sums run
// over fixed blocks in a fixed order, and the same rows and arguments give the same bytes
// on one kind of processor. Processors with other vector instructions round differently,
// so that probabilities differ in their last digits.
//
// # State
//
// The file weights in the state folder has the labels, the inverse document frequencies and
// the weights, with a version and a checksum. It is written whole and then renamed.
//
// The voter abstains on items without a vector, and where the knowledge has no labels. Its
// ballot has the 50 likeliest labels. It does not know items that fit none of them.
package linear
