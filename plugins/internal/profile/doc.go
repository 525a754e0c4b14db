// Package profile knows what a language model takes: which fields of a request, which
// form of structured answers, whether it thinks before it answers and how many tokens that
// takes, and how texts become tokens. No model is known by its name.
//
// A Profile is found by a probe of at most four short calls. The first has every field
// that a stage may send, and as many choices as the stage will ask for; what it is refused for
// is left out of the next one. The last ones ask for a structured answer, with room for
// thoughts, in one form after the other until the model obeys. What four calls cannot tell stays
// unknown, and the requests of the stage find it out.
//
// Apply changes a request by a profile before it is sent: it leaves out what the model
// refuses, gives the limit the name that the server has for it, adds room for thoughts,
// and chooses the form of structured answers. What is unknown is sent as it was asked for.
//
// A Keeper holds the profile of one model: it probes before the first call where nothing is
// kept, once for all that wait for it, and learns from what later calls are refused for and
// from their replies. What a file gives in its profile block goes before what is found.
//
// What replies to real requests took (Seen) is kept by the kind of the request, for forecasts: how
// many tokens texts, answers and thoughts have, and how much of the prompts was cached.
//
// The package sends nothing itself: its owner gives it a function for that, so that
// limits and budgets count the calls of a probe like any others. Where profiles are
// stored is for the Host to decide.
package profile
