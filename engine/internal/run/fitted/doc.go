// Package fitted lets stages of a run learn from a knowledge before the run begins. It keeps what they learnt in
// a folder for each generation, stage and content:
//
//	STATE/fitted/GENERATION/WORK-STAGE-CONTENT
//
// For a collection that another program makes, a folder for each block and config of its store replaces
// GENERATION, and CONTENT is the hash of its sample.
//
// WORK is the digest of the stage's use and arguments, STAGE that of the same with its fingerprint, and CONTENT
// that of the entries' sources and number. If the folder exists, the stage opens with it as its state_dir.
// Otherwise the stage gets a new folder beside it and all rows of the generation, a page of the store at a time.
// Once it has replied, its files are forced to the disk and the folder is renamed. So a folder with such a name
// is whole, however a fit ends, and of two made at a time the first stays. Changed rows are another CONTENT: the
// stage learns anew.
//
// From a large knowledge a stage gets a sample of the rows (Job.All) without those that are held out for an
// election to learn from, so that one fit serves both. CONTENT then includes the bound of the sample; without a
// sample, CONTENT is that of all rows.
//
// What took calls of services to learn (Job.Asks) is kept apart, under WORK with a "c" at its end, and as long as its
// generation. An edition of a knowledge gets a copy of what was learnt from its generation (Kept).
//
// Superseded folders, and those that killed processes left, are removed a day later. Remove removes all folders
// of a generation, together with it.
//
// If STATE cannot be written and has no such folder yet, the stage learns into a folder that ends with the
// process.
//
// Package knowledge keeps what an embedder learns, as a part of its generation.
package fitted
