// Package identity knows what a result depends on, in one place: Parts for the
// answers of a run, Block and Output for the entries of a knowledge, Stage for what one
// stage learns or is owed.
//
// Nothing is listed here. Every field of the structs of package pipeline carries a
// tag that says what changes with it:
//
//	`identity:"run"`            the answers of a run
//	`identity:"knowledge"`      the entries of a knowledge
//	`identity:"run,knowledge"`  both
//	`identity:"run,whole"`      the same, with all exported fields of a struct that has no such tags
//	`identity:"-,REASON"`       nothing
//
// and the tags of a stage's config say which of its arguments do not change results or are secret;
// the rest is pipeline.Config.Identity. A test walks the structs and fails for a field
// that nobody decided on.
//
// In is what changes an answer or an entry: the stages that are on and their order,
// what they use and its arguments, samples and resamples, searches, the store's own
// arguments, rules with the values of the variables that they read, fallbacks,
// on_error, and the columns of the source and of the input. The values of variables
// that arguments read are in those arguments.
//
// Out is what changes how fast, how often or at what price something is asked, and
// where the file says it: batches, workers, retries, timeouts, limits, budgets, prices
// and positions. Out is, too, what is only known when the run begins, such as the
// limits that a service reports. Secrets are out, so that a new key resumes a run.
//
// A zero value counts as absent, so that a new field leaves the digests of files alone
// that do not use it. What a stage depends on beyond its arguments (a model, a
// template, the revision of its code) it says by its fingerprint: see Output. The
// content of files is compared by who reads them: packages journal and knowledge.
package identity
