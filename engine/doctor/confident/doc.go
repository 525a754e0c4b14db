// Package confident finds rows whose label is probably wrong, by what voters say of them
// that have not seen them: confident learning (Northcutt, Jiang and Chuang, "Confident
// Learning: Estimating Uncertainty in Dataset Labels", JAIR 70, 2021).
//
// The threshold of a label is the mean probability that rows with it are given for it. A row is
// counted in the confident joint at its own label and the likeliest of those labels
// whose thresholds it reaches. How many rows stand off the diagonal there says how many labels are
// wrong; which ones, the rank by self-confidence, the probability of a row's own label: those
// with the least, where another label is likelier and has a share of 0.4 or more. That rank was chosen over the normalised
// margin, which puts rows first that resemble another label, right or wrong.
//
// It asks no voter, and changes no row.
package confident
