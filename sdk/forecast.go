package sdk

// Forecaster is a Sampler that knows what an item would cost without calling a service. The
// engine asks built-in stages, which it opens in its own process for that, with a Host that
// permits no call; for others it knows no bound.
type Forecaster interface {
	Forecast(item Item) (Forecast, error)
}

// EnrichForecaster is the same for an Enricher, and all passages of a document.
type EnrichForecaster interface {
	ForecastPassages(passages []Passage) (Forecast, error)
}

// Forecast is what it costs to ask about an item once. What the response cache of the Host
// has costs nothing.
type Forecast struct {
	Cached  int // answers that are in the response cache
	Answers int // the others, that are asked for

	Requests int // for these, if the service gives as many answers as a request asks for
	// Likely is what they are expected to take. Its CachedTokens, which a service may have in
	// its own cache since an earlier request begins with them, are filled in by the engine.
	Likely Usage

	MostRequests int // if each gives one answer
	// Most is what all requests take at most whose answers arrive.
	Most    Usage
	Unknown string // why Most is unknown, and what to do about that; empty: it is known
}

// Add adds the forecast of another item.
func (f *Forecast) Add(o Forecast) {
	f.Cached += o.Cached
	f.Answers += o.Answers
	f.Requests += o.Requests
	f.MostRequests += o.MostRequests
	f.Likely.Add(o.Likely)
	f.Most.Add(o.Most)
	if o.Unknown != "" {
		f.Unknown = o.Unknown
	}
}

// CharactersPerToken is about what English text has with the tokenizers of today's
// models. Other languages have fewer characters to a token.
const CharactersPerToken = 4

// EstimateTokens estimates the tokens of so many characters, rounded up.
func EstimateTokens(characters int) int {
	return (characters + CharactersPerToken - 1) / CharactersPerToken
}
