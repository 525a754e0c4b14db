package attached

import (
	"context"

	"github.com/racflow/racflow/plugins/store/milvus/internal/mapping"
)

// fillDense gives the lexical hits of a query their cosines.
func (c *Collection) fillDense(ctx context.Context, q *query) error {
	if q.vector == nil || !c.scores.exact {
		return nil // there is none, or it came with the hits
	}
	known := scoresOf(q.dense, func(h hit) float32 { return h.dense })
	more, err := c.ask(ctx, missing(q.lexical, known), func(expr string, n int) request {
		return c.denseRequest([][]float32{q.vector}, expr, c.Outputs(false, false, false), n)
	})
	for i := range q.lexical {
		h := &q.lexical[i]
		if score, ok := known[h.key]; ok {
			h.dense = score
		} else if score, ok := more[h.key]; ok {
			h.dense = c.scores.cosine(score)
		}
	}
	return err
}

// fillLexical gives the dense hits of a query their scores by words: 0 where the
// server finds none of the words; Unscored where no literal can name their keys.
func (c *Collection) fillLexical(ctx context.Context, q *query) error {
	known := scoresOf(q.lexical, func(h hit) float32 { return h.lexical })
	more, err := c.ask(ctx, missing(q.dense, known), func(expr string, n int) request {
		return c.lexicalRequest([]string{q.Text}, expr, c.Outputs(false, false, false), n)
	})
	for i := range q.dense {
		h := &q.dense[i]
		if score, ok := known[h.key]; ok {
			h.lexical = score
		} else if _, asked := mapping.OneOf(mapping.Place{Field: c.Key}, []string{h.key}); asked == 1 {
			h.lexical = bm25(more[h.key])
		}
	}
	return err
}

func scoresOf(hits []hit, score func(hit) float32) map[string]float32 {
	known := map[string]float32{}
	for _, h := range hits {
		known[h.key] = score(h)
	}
	return known
}

func missing(hits []hit, known map[string]float32) (keys []string) {
	for _, h := range hits {
		if _, ok := known[h.key]; !ok {
			keys = append(keys, h.key)
		}
	}
	return keys
}

// ask searches among a few rows and returns the server's scores.
func (c *Collection) ask(ctx context.Context, keys []string, make func(expr string, n int) request) (map[string]float32, error) {
	found := map[string]float32{}
	expr, n := mapping.OneOf(mapping.Place{Field: c.Key}, keys)
	if n == 0 {
		return found, nil
	}
	lists, err := c.search(ctx, make(expr, n))
	if err != nil {
		return nil, err
	}
	for _, r := range lists[0] {
		found[r.key] = r.score
	}
	return found, nil
}
