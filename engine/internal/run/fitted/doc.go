// Package fitted lets stages of a run learn from a knowledge before it begins, and keeps
// what they have learnt.
//
// That is a folder for each generation, stage and content:
//
//	STATE/fitted/GENERATION/WORK-STAGE-CONTENT
//
// A collection that another program makes has a folder for each block and config of its store in the
// place of a generation, and the hash of its sample as CONTENT.
//
// WORK is the digest of what the stage uses with which arguments, STAGE that of the same
// with its fingerprint; CONTENT that of what the entries were made from, and their number.
// Where the folder is there, the stage opens with it as its state_dir. Else the stage gets a new folder
// beside it and all rows of the generation, a page of the store at a time; once it has
// replied, its files are forced to the disk and the folder takes that name. So a folder
// with such a name is whole, however a fit ends, and of two that are made at a time the
// first stays. Changed rows are another CONTENT: the stage learns anew.
//
// Of a large knowledge a stage gets a sample of the rows (sample.go), which CONTENT names with its bound;
// without one CONTENT is that of all rows.
//
// What was superseded, or left by a process that was killed, goes a day later; all of a
// generation goes with it (Remove).
//
// Where STATE cannot be written and this is not there yet, it is learnt into a folder that ends with the process.
//
// What an embedder learns is part of its generation, and kept by package knowledge.
package fitted
