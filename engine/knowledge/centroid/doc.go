// Package centroid makes the centroids of labels and searches them: the mean directions of
// the vectors that have a label, as in a nearest centroid classifier with cosine distance
// (Han and Karypis 2000).
//
// It reads and keeps nothing: a build puts centroids into its store, which searches them
// there; an attached collection has them in memory.
package centroid
