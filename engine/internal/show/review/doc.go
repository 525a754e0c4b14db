// Package review is where people decide: about the items of a run that are flagged or have no
// answer, and about rows of a knowledge that racflow doctor found something wrong with.
//
// A Queue has a Case for each text, or row, that is to be decided, the most doubtful first, and the
// decisions about them. A decision is on the disk when Decide returns, as a row of package reviewed:
// what a source block with reviewed = true reads. So nothing is lost when the process ends, and
// the file is all that a later review needs to know what was decided before.
//
// Several people may decide at once, through one Queue or through several processes. Who decides
// names the decision that was shown to them (Request.Version): if another one was made meanwhile,
// they get it as a ConflictError instead of replacing it unseen. Undo takes back what the same page
// decided last, and what others have decided since stays.
//
// A label that the knowledge does not have is refused until it is confirmed (Request.New), so that
// a slip of the keyboard makes no new class.
//
// How this is shown is the business of package page, and what becomes of the decisions that of
// package knowledge.
package review
