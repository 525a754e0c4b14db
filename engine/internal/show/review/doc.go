// Package review lets people decide about the items of a run that are flagged or have no
// answer, and about rows of a knowledge that racflow doctor found something wrong with.
//
// A Queue has a Case for each text, or row, to decide about, the most doubtful first, and the
// decisions about them. When Decide returns, the decision is on the disk as a row of package reviewed:
// what a source block with reviewed = true reads. So nothing is lost when the process ends, and a
// later review needs only that file to know the earlier decisions.
//
// A choice (Options.Next) has the texts of a run whose labels teach most, in place of the doubtful items:
// next.go compares the texts with each other and with the knowledge, and pick.go picks.
//
// Several people may decide at once, through one Queue or through several processes. A request
// names the decision that its person saw (Request.Version): if another person decided in the meantime,
// the request fails with a ConflictError instead of replacing that decision unseen. Undo takes back
// what the same page decided last, and keeps what others have decided since.
//
// A label that the knowledge does not have is refused until it is confirmed (Request.New), so that
// a typing error makes no new class.
//
// Package page shows the queue, and package knowledge uses the decisions.
package review
