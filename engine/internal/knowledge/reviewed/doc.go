// Package reviewed reads and writes what people have decided: a file of rows with labels, one
// JSON object a line, made to be committed and edited by hand.
//
//	{"id":"r-7a98469cc36d","text":"my card is gone","label":"card_lost","reviewer":"Ada","reviewed_at":"2026-11-23T10:00:00Z","run":"run-000012","item":"17","was":"card_stolen"}
//
// A source block with reviewed = true reads it. A row is an example like those of the knowledge's
// other sources. One with replaces takes the place of the row of another source that has this id;
// without a label, it drops that row. An item with the text of a row is answered by that decision.
//
// A row's id follows from what was decided about: the text or, where it replaces a row, that
// row's id. So a later decision about the same takes the place of the earlier one. Of several
// lines that are about the same, as a merge may leave them, the last one counts.
//
// Files are replaced as a whole, under a lock, and are on the disk when Write returns. Lines that
// are not about what is written stay letter by letter, also those that cannot be read.
//
// Who decides, and about what, is the business of others; so is what becomes of the rows in a
// knowledge (package generation).
package reviewed
