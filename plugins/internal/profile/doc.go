// Package profile describes what a language model accepts: the fields of a request and the form of structured
// answers. A profile also says whether the model thinks before it answers, how many tokens its thoughts need, and how
// texts become tokens. The package recognises no model by its name.
//
// A probe of at most four short calls finds a Profile. The first call has every field that a stage may send, and as
// many choices as the stage will ask for. Each further call leaves out the fields that the server refused. The last
// calls ask for a structured answer, with room for thoughts, in one form after another until the model obeys. What
// four calls cannot find out stays unknown until the requests of the stage show it.
//
// Apply changes a request by a profile before it is sent. It removes the fields that the model refuses, gives the
// limit the name that the server expects, adds room for thoughts, and chooses the form of structured answers. It
// leaves fields of which the profile knows nothing as they are.
//
// A Keeper holds the profile of one model. Where no profile is stored, it probes before the first call, once for all
// waiting callers. It learns from refusals and replies of later calls. The profile block of a file overrides what was
// found.
//
// For estimates the profile also records the token use of real requests (Seen), by kind of request: tokens of texts,
// answers and thoughts, and the cached share of the prompts.
//
// The package sends nothing itself: its owner provides a function for that, so that limits and budgets count the
// calls of a probe like any others. The Host decides where profiles are stored.
package profile
