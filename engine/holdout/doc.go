// Package holdout keeps rows of a knowledge out of what is found for them, so that
// voters can be asked about rows whose labels are known as if they had never seen them.
//
// Choose takes some rows. Such a row, as an item, is searched for among the others
// (Except), and compared with the centroid of its label without it (Prototypes): that is
// leave-one-out. A voter that learns from the rows cannot be fitted anew for each of
// them: it is fitted once for each fold, on the rows outside of it (Without).
//
// Package stage asks the voters, and hands their votes to the election that learns from
// them (Wolpert, "Stacked generalization", Neural Networks 5, 1992: the level above
// learns from votes on rows that the level below has not seen).
package holdout
