package sdk

// Forecaster is what a Sampler can be as well: it says what an item would come to
// without calling anybody. The engine asks the built-in stages, which run in its own
// process for that; of any other it knows no bound.
type Forecaster interface {
	Forecast(item Item) (Forecast, error)
}

// Forecast is what the calls for an item come to, with none of its answers kept.
type Forecast struct {
	Requests int // where the service gives as many answers as a request asks for
	// Likely are their tokens: in, roughly; out, as many as the answers may have,
	// and 0 where these have no limit.
	Likely Usage
	// Most is what all requests take at most whose answers arrive: with an answer
	// to each, if that is all that the service gives.
	Most    Usage
	Unknown string // why nobody knows Most; empty: it is known
}

// CharactersPerToken is about what English text has with the tokenizers of today's
// models. Other languages have fewer characters to a token.
const CharactersPerToken = 4

// EstimateTokens estimates the tokens of so many characters, rounded up.
func EstimateTokens(characters int) int {
	return (characters + CharactersPerToken - 1) / CharactersPerToken
}
