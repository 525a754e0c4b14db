// Package reelect holds the elections of answered items again, as if some of their
// voters had not been asked, or with other weights: by the same code, rules included,
// on the same ballots. No voter is called.
//
// What is gained by that, and which items are compared, packages tune and eval know.
package reelect
