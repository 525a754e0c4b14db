// Package report makes pages that explain runs: one of a run, and one that compares two.
//
// The page of a run has its totals; for a run with labels what package eval measures, accuracy
// by coverage and calibration among it; cost and time by stage; and a table of the items,
// those first that failed, are wrong or flagged. Each opens to what made its answer, which
// package explain knows. The page of two runs has what package compare finds: which items
// are answered differently, and whether that is more than chance.
//
// What made the answers is in blocks of a few items, which the page unpacks when one of them is
// opened; texts of candidates are in one block for all. A page grows to some 12 MB: then
// it is without what made the answers of the others, and says so. It lists 50,000 items at most.
// The same run has a page of the same bytes, as long as what explains it is there.
//
// Nothing is measured here, and nothing is looked up.
package report
