// Package estimate says what the calls of a run would come to before any is
// made: a few items go through the pipeline, and in place of each voter that
// calls a service stands one that only looks at the prompts it is given.
//
// Tokens are counted as characters divided by four, which is rough: English
// text is near that, other languages and code take more. A service that gives
// one answer per request is sent the same prompt once per sample, of which a
// cache on its side may take most. The stand-in casts no vote, so a later rule
// that reads votes sees those of the local voters alone; tries and retries are
// not foreseen.
//
// Enrichers are not rehearsed: the plan of a knowledge counts the passages that
// they would be asked about, and these become tokens here.
package estimate
