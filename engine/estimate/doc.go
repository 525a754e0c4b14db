// Package estimate says what the calls of a run would come to before any is
// made: items go through the pipeline, and in place of each voter that calls a
// service stands one that only looks at the prompts it is given.
//
// There are two figures. One is likely: tokens in are characters divided by four,
// which is near for English text, while other languages and code take more; tokens
// out are as many as the answers may have; and the service gives as many answers
// per request as it is asked for. The other is a bound: no token is shorter than a
// byte, a JSON schema counts with the prompt, each answer has a request of its own,
// and every item is asked as often as resamples allows.
//
// A bound comes from the voter itself (sdk.Forecaster), and there is none where it
// does not say: a plugin of a third party, an answer without a limit. Nor is there one
// where other items may reach the voter than those that did here: the stand-in casts
// no vote, so a later rule that reads votes sees those of the local voters alone.
// Requests that failed and are sent again come on top of both figures.
//
// Enrichers make no dry run: the plan of a knowledge counts the passages that
// they would be asked about, and these become tokens here. No bound is known.
package estimate
