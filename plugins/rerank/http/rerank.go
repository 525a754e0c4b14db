package http

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

// together is how many requests of an item are sent at a time.
const together = 16

// Rerank implements sdk.Reranker.
func (r *reranker) Rerank(ctx context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	return api.Rows(ctx, b.Items, r.rank)
}

// rank returns the candidates of one item, best first.
func (r *reranker) rank(ctx context.Context, item sdk.Item) ([]sdk.Ranked, error) {
	var documents []string
	var of []int // the candidate of each document
	for i := range item.Candidates {
		if text := r.document(&item.Candidates[i]); text != "" {
			documents, of = append(documents, text), append(of, i)
		}
	}
	if len(documents) == 0 {
		return nil, nil
	}
	query := strings.TrimSpace(strings.ToValidUTF8(item.Text, "\uFFFD"))
	if query == "" {
		return nil, sdk.Invalid(errors.New(`the item has no text to rank by; on_error = "skip" leaves the order as it is`))
	}
	scores := make([]float32, len(documents))
	var calls errgroup.Group // without a context: scores of other requests are still cached
	calls.SetLimit(together)
	for from := 0; from < len(documents); from += r.config.MaxDocuments {
		to := min(from+r.config.MaxDocuments, len(documents))
		calls.Go(func() error { return r.score(ctx, query, documents[from:to], scores[from:to]) })
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	var ranked []sdk.Ranked
	for i, s := range scores {
		if !math.IsNaN(float64(s)) {
			ranked = append(ranked, sdk.Ranked{Candidate: of[i], Score: s})
		}
	}
	slices.SortStableFunc(ranked, func(a, b sdk.Ranked) int { return cmp.Compare(b.Score, a.Score) })
	return ranked, nil
}

// document is the text of a candidate that the service gets.
func (r *reranker) document(c *sdk.Candidate) string {
	text := c.Text
	if r.config.Context && c.Context != "" {
		text = c.Context + "\n" + text
	}
	return fewshot.Clip(strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")), r.config.MaxCharacters)
}

// score fills in the scores of the documents of one request: not a number for
// those that the service leaves out.
func (r *reranker) score(ctx context.Context, query string, documents []string, scores []float32) error {
	body, answer := r.shape.body(r.config.Model, query, documents), r.shape.reply()
	request := api.Request{Client: r.Client}
	keys := []sdk.Key{request.Key(r.config.Path, body, r.config.API)}
	cached, err := r.CacheGet(ctx, keys)
	if err != nil {
		return err
	}
	if len(cached[0]) == 4*len(scores) {
		for i := range scores {
			scores[i] = math.Float32frombits(binary.LittleEndian.Uint32(cached[0][4*i:]))
		}
		return nil
	}
	request.OnReply = func() error {
		if err := r.take(answer.scores(), scores); err != nil {
			return err
		}
		value := make([]byte, 0, 4*len(scores))
		for _, s := range scores {
			value = binary.LittleEndian.AppendUint32(value, math.Float32bits(s))
		}
		r.CachePut(ctx, keys, [][]byte{value})
		return nil
	}
	err = request.Post(ctx, r.config.Path, body, answer)
	if api.BadRequest(err) {
		return fmt.Errorf("%w; if documents are too long for the model, lower max_characters, if they are too many, max_documents", err)
	}
	return err
}

// take checks the scores of a reply and puts them in the order of the documents.
func (r *reranker) take(all []scored, scores []float32) error {
	for i := range scores {
		scores[i] = float32(math.NaN())
	}
	if len(all) == 0 {
		return api.NoAnswer(fmt.Sprintf("the server gave no scores for %d documents; check base_url, path and api", len(scores)))
	}
	seen := make([]bool, len(scores))
	for _, s := range all {
		switch {
		case s.Index == nil || *s.Index < 0 || *s.Index >= len(scores):
			return sdk.Transient(fmt.Errorf("the server gave a score for a document that is none of the %d it got", len(scores)), 0)
		case seen[*s.Index]:
			return sdk.Transient(fmt.Errorf("the server gave two scores for document %d", *s.Index), 0)
		case s.value() == nil || math.Abs(*s.value()) > math.MaxFloat32:
			return sdk.Invalid(fmt.Errorf("the server's score of document %d is not a number", *s.Index))
		}
		seen[*s.Index], scores[*s.Index] = true, float32(*s.value())
	}
	if missing := len(scores) - len(all); missing > 0 {
		r.WarnOnce("left out", "the service leaves documents out, and so does the ranking", "documents", len(scores), "left_out", missing)
	}
	return nil
}
