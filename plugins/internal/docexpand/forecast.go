package docexpand

import (
	"context"
	"slices"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/sdk"
)

// generous is how many times the tokens that a term usually has Kind.Tokens is.
const generous = 3

// ForecastPassages implements sdk.EnrichForecaster.
func (e *enricher) ForecastPassages(passages []sdk.Passage) (f sdk.Forecast, err error) {
	w := &work{enricher: e, additions: make([]sdk.Addition, len(passages))}
	for from, to := range api.Documents(passages) {
		distinct := w.distinct(passages, from, to)
		missing, err := w.recall(context.Background(), distinct)
		if err != nil {
			return f, err
		}
		f.Cached += len(distinct) - len(missing)
		for batch := range slices.Chunk(missing, e.config.BatchSize) {
			for pack := range slices.Chunk(batch, e.config.Pack) {
				one, err := e.forecast(pack)
				if err != nil {
					return f, err
				}
				f.Add(one)
			}
		}
	}
	return f, nil
}

// forecast is what passages take that are asked about in one request: at most, each is asked
// about alone as well, since the answer lacks its terms.
func (e *enricher) forecast(pack []*passage) (f sdk.Forecast, err error) {
	each := e.n * e.kind.Tokens / generous
	if len(pack) > 1 {
		texts := make([]string, len(pack))
		for i, p := range pack {
			texts[i] = p.text
		}
		q, err := e.question(pack[0].title, texts, true)
		if err == nil {
			f, err = e.Forecast(q, 1, 1, func(profile.Profile) int { return each * len(pack) })
		}
		if err != nil {
			return f, err
		}
	}
	for _, p := range pack {
		q, err := e.question(p.title, []string{p.text}, false)
		if err != nil {
			return f, err
		}
		one, err := e.Forecast(q, 1, 1, func(profile.Profile) int { return each })
		if err != nil {
			return f, err
		}
		if len(pack) > 1 {
			one.Requests, one.Likely, one.Answers = 0, sdk.Usage{}, 0
		}
		f.Add(one)
	}
	f.Answers = len(pack)
	return f, nil
}

var _ sdk.EnrichForecaster = (*enricher)(nil)
