// Package prototype is a voter: the labels whose centroids lie nearest.
//
// The weight of a label is softmax(sharpness * cosine) over all labels of the
// knowledge, where cosine is that of the item's vector to the mean of the
// label's vectors: the nearest-centroid rule (Rocchio, 1971; Tibshirani et
// al., "Diagnosis of multiple cancer types by shrunken centroids", 2002) read
// as probabilities, as in Snell et al., "Prototypical Networks for Few-shot
// Learning", 2017. The default sharpness, 20, serves CLINC150, HWU64 and
// DBpedia classes alike.
//
// It does not compute centroids: the engine keeps them in the store and sends
// their labels and cosines.
package prototype
