package context

import (
	"context"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/sdk"
)

// written is how many tokens an answer is expected to have: the instructions ask for a
// sentence or two.
const written = 80

// ForecastPassages implements sdk.EnrichForecaster.
func (e *enricher) ForecastPassages(passages []sdk.Passage) (f sdk.Forecast, err error) {
	w := &work{enricher: e, passages: passages, additions: make([]sdk.Addition, len(passages))}
	for from, to := range api.Documents(passages) {
		v, rows, order := w.windows(from, to)
		for _, window := range order {
			g := group{work: w, rows: rows[window]}
			if err = g.begin(v, window); err != nil {
				return f, err
			}
			asked := len(g.rows)
			if g.rows, err = g.recall(context.Background()); err != nil {
				return f, err
			}
			f.Cached += asked - len(g.rows)
			for _, row := range g.rows {
				q, _, err := g.question(row)
				if err != nil {
					return f, err
				}
				one, err := e.Forecast(q, 1, 1, func(profile.Profile) int { return written })
				if err != nil {
					return f, err
				}
				f.Add(one)
			}
		}
	}
	return f, nil
}

var _ sdk.EnrichForecaster = (*enricher)(nil)
