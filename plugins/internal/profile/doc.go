// Package profile knows what a language model takes: which fields of a request, which
// form of structured answers, whether it thinks before it answers and how many tokens that
// takes, and how texts become tokens. No model is known by its name.
//
// A Profile is found by a probe of at most four short calls. The first has every field
// that a stage may send; where it is answered, it shows most. The second asks for a
// structured answer, with room for thoughts. A call with n asks for as many choices as the
// stage will; where that is too many, the next ones ask for fewer, by powers of two, and
// have the text of another length. A further one has another length, so that two
// lengths give the bytes of a token and the tokens that the chat template adds. What a
// call was refused for is left out of the next one, and of the forms of structured answers
// the next is tried. What four calls cannot tell stays unknown.
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
