// Package review lets people decide about items of a run that are flagged or have no answer, and
// about rows of a knowledge with findings of racflow doctor.
//
// A Queue has a Case for each text or row to decide about, the most doubtful first, and the decisions.
// When Decide returns, the decision is on the disk as a row of package reviewed. A source block with
// reviewed = true reads this file. So nothing is lost when the process ends, and a later review needs
// only this file to know the earlier decisions.
//
// With Options.Next, a review has the texts of a run whose labels would teach most, instead of the
// doubtful items (active learning). next.go compares the texts with each other and with the knowledge;
// pick.go picks.
//
// Several people may decide at once, through one Queue or through several processes. A request names
// the decision that its person saw (Request.Version): if another person decided in the meantime, the
// request fails with a ConflictError instead of replacing that decision unseen. Undo takes back the
// last decision of the same page, and keeps later decisions of others.
//
// A label that the knowledge does not have is refused until it is confirmed (Request.New), so that
// a typing error does not create a label.
//
// Package page shows the queue, and package knowledge uses the decisions.
package review
