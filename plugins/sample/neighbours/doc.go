// Package neighbours is a voter: the weighted vote of an item's k nearest
// labelled neighbours.
//
// The weight of a label is the sum over its neighbours of
//
//	exp(sharpness * score) / sum over the k neighbours of exp(sharpness * score)
//
// where score is the candidate's score after retrieval, so the vote follows
// whatever search and reranking stand above it. With sharpness 0 every
// neighbour has one vote, which is plain kNN (Cover and Hart, "Nearest
// neighbor pattern classification", 1967); weighting by closeness is Dudani,
// "The distance-weighted k-nearest-neighbor rule", 1976, with the exponential
// kernel that attention and matching networks use (Vinyals et al., 2016).
//
// The defaults, 30 neighbours and sharpness 15, serve CLINC150, HWU64 and
// DBpedia classes alike with scores between 0 and 1 (weighted fusion, or
// cosine). Reciprocal-rank scores are far smaller and want a far greater
// sharpness.
//
// It does not search: it votes on the candidates it is given, and abstains on
// an item that has none with a label.
package neighbours
