package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/remote"
)

// scoresFall checks that the scores of a reranker do not contradict its order.
var scoresFall = Check{
	Name: "scores fall", Within: Long,
	Why: "The order of a ranking counts, and rules see the scores; scores that rise say that the worst stands first.",
	Fix: "Sort by the score in descending order, or return scores of which more is better.",
	Run: opened(func(ctx context.Context, s *remote.Stage, _ sdk.Stage) error {
		lists, err := s.Rerank(ctx, items(9))
		if failed := (sdk.RowErrors)(nil); err != nil && !errors.As(err, &failed) {
			return err
		}
		for i, list := range lists {
			for j := 1; j < len(list); j++ {
				if list[j].Score > list[j-1].Score {
					return fmt.Errorf("row %d: score %v at place %d follows score %v", i, list[j].Score, j+1, list[j-1].Score)
				}
			}
		}
		return nil
	}),
}
