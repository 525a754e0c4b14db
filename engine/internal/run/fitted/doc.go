// Package fitted lets stages of a run learn from a knowledge before the run begins. It keeps what each stage
// learnt in a folder for the generation, the stage and the content:
//
//	STATE/fitted/GENERATION/WORK-STAGE-CONTENT
//
// For a collection that another program makes, GENERATION is a folder for the block and config of its
// store, and CONTENT is the hash of its sample.
//
// WORK is a digest of the stage's use and arguments, STAGE is a digest of both and the stage's fingerprint, and
// CONTENT is a digest of the entries' sources and their number. If the folder exists, the stage opens with it as
// its state_dir. Otherwise the stage gets a temporary folder and all rows of the generation, a page of the store
// at a time. When the stage has replied, its files are synced to the disk and the folder is renamed. So a folder
// with a final name is always complete. If two processes make the same folder, the first stays. Changed rows
// change CONTENT: the stage learns anew.
//
// From a large knowledge a stage gets a sample of the rows (Job.All). The sample leaves out the rows that are
// held out for an election, so that one fit serves both. CONTENT then includes the bound of the sample.
//
// Results that took calls to services (Job.Asks) have a separate folder, with a "c" after WORK, and stay as long as
// the generation. An edition of a knowledge gets a copy of what was learnt from its generation (Kept).
//
// Superseded folders and leftovers of killed processes are removed a day later. When a generation is removed,
// Remove removes all its folders.
//
// If STATE cannot be written and does not have the folder, the stage learns into a folder that is removed
// with the process.
//
// What an embedder learns is a part of its generation, in package knowledge.
package fitted
