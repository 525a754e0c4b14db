package sdk

// Forecaster is a Sampler that knows what an item would cost without calling a service. The
// engine asks built-in stages, which it opens in its own process for that; for others it
// knows no bound.
type Forecaster interface {
	Forecast(item Item) (Forecast, error)
}

// Forecast is the cost of an item of which no response is cached.
type Forecast struct {
	Requests int // if the service gives as many answers as a request asks for
	// Likely are their tokens: in, roughly; out, as many as the answers may have,
	// and 0 where these have no limit.
	Likely Usage
	// Most is what all requests take at most whose answers arrive: with an answer
	// to each, if that is all that the service gives.
	Most    Usage
	Unknown string // why Most is unknown; empty: it is known
}

// CharactersPerToken is about what English text has with the tokenizers of today's
// models. Other languages have fewer characters to a token.
const CharactersPerToken = 4

// EstimateTokens estimates the tokens of so many characters, rounded up.
func EstimateTokens(characters int) int {
	return (characters + CharactersPerToken - 1) / CharactersPerToken
}
