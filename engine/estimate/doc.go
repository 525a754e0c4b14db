// Package estimate says what the calls of a run would come to before any is
// made: items go through the pipeline, and in place of each voter that calls a
// service stands one that only looks at the prompts it is given.
//
// There are two figures, and a voter itself says both (sdk.Forecaster): what is expected,
// and what is taken at most. What is expected counts one sampling of each item, since nobody
// knows how many answers will be accepted; at most, every item is asked as often as
// resamples allows, and each answer has a request of its own. What the response
// cache has is asked for in neither.
//
// There is no bound where a voter does not say one: a plugin of a third party, an answer
// without a limit, a model of which nobody knows whether it thinks. Nor is there one
// where other items may reach the voter than those that did here: the stand-in casts
// no vote, so a later rule that reads votes sees those of the local voters alone.
// Requests that failed and are sent again come on top of both figures where their reply was lost.
//
// Of a voter that says nothing, tokens in are characters divided by four, and tokens out
// as many as max_tokens in its config allows.
//
// What a service may have in its own cache are the beginnings of prompts that stood at
// the beginning of an earlier one, of at least 1,024 tokens, in steps of 128: so OpenAI's.
// Whether it has them is for the service to say.
//
// Enrichers make no dry run: a plan of their knowledge shows them the passages that they
// would be asked about. Of one that says nothing (sdk.EnrichForecaster), what it is
// expected to take is reckoned here from the characters of these, and no bound is known.
package estimate
