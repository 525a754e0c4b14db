// Package confident finds rows whose label is probably wrong, by what voters say of them that have
// not seen them, and says how probably.
//
// Voters contradict more labels than are wrong: those of rows in other words than the rest, and those of
// labels with few rows. So the label that a row has is taken as drawn in one of two ways. With
// a probability, the rate, it is any label at random. Else it is right, and drawn from the voters'
// probabilities, calibrated by an exponent (temperature scaling: Guo, Pleiss, Sun and Weinberger, "On
// Calibration of Modern Neural Networks", ICML 2017). Rate and exponent are those with which the labels
// of all rows are the likeliest. Voters that err give the right label a small probability, which
// the exponent learns from all rows; random labels have smaller ones than that explains, as
// often as the rate says. By Bayes' rule each row then has a probability that its label is wrong. Those
// that are rather wrong than right are named, and the mean of their probabilities is the share that
// is expected to be wrong. Relabel is set where one other label is right with 0.95.
//
// # MEASURED
//
// It knows errors that are no more likely for one label than for another. Where labels are confused
// because they mean nearly the same, voters confuse them too, and it stays silent.
//
// It asks no voter, and changes no row.
package confident
