// Package reviewed reads and writes people's decisions: a file of rows with labels, one JSON object a line,
// made to be committed and edited by hand.
//
//	{"id":"r-7a98469cc36d","text":"my card is gone","label":"card_lost","reviewer":"Ada","reviewed_at":"2026-11-23T10:00:00Z","run":"run-000012","item":"17","was":"card_stolen"}
//
// A source block with reviewed = true reads the file. A row is an example like those of the knowledge's other
// sources. A row with replaces has the id of a row of another source. It replaces that row or, without a
// label, drops it. A decision also answers items that have its text.
//
// A row's id is derived from the subject of the decision: the text or, if it replaces a row, that row's id.
// So a later decision about the same subject replaces the earlier one. If several lines are about the same
// subject, as after a merge, the last one counts.
//
// Write replaces the whole file, under a lock. The file is on the disk when Write returns. Lines about other
// subjects stay unchanged, even unreadable ones.
//
// Other packages record who decides, and about what; package generation applies decisions to the rows of a
// knowledge.
package reviewed
