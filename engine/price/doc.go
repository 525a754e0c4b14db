// Package price knows what models cost where a pipeline file does not say: by a file of
// the user's, and else by a table that comes with racflow.
//
// Both have the same form: lines of columns that tabs separate, the first of which names
// them. Lines that begin with # are comments.
//
//	host	model	input	cached	output	batch
//	api.openai.com	gpt-4o-mini	0.15	0.075	0.6	0.5
//	llm.example.com:8443	*	0		0
//
// The host is that of a stage's base_url, with its port or for every port, and the model
// that of its config; * is every other model of the host. Prices are for a million tokens: in, in
// and cached by the service, and out. The batch column is what calls in batches cost as a
// share of that. Without a cached price a cached token costs what any costs, and columns
// but host, model and input may be left out. What costs 0 is free.
//
// The user's file is the one that RACFLOW_PRICES names, or else prices.tsv in the folder
// racflow of the user's configuration. A line of it goes before the table's, and a
// stage's price block goes before both.
//
// The table, prices.tsv, has prices in dollars of well-known models at their own services.
// It is made of LiteLLM's (LICENSE-litellm) by the command in the folder generate, and
// says of which version and day. Prices change, so plans name that day. It has the lowest
// step where long prompts cost more, takes a token that is written into a service's cache
// for any other token, and has no prices of Azure, where a deployment's name does not tell
// the model, and of gateways. A server of one's own is not in it, so it has no price.
//
// The package fetches nothing.
package price
