package serve

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/live"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/serve/guard"
)

// What huma finds wrong with a request is a problem like all others. It would repeat what
// is wrong, which may be long.
func init() {
	huma.NewError = func(status int, text string, found ...error) huma.StatusError {
		p := guard.NewProblem(status, text)
		for _, err := range found {
			var detail *huma.ErrorDetail
			switch {
			case errors.As(err, &detail):
				p.Errors = append(p.Errors, guard.Detail{Message: detail.Message, Location: detail.Location})
			case err != nil:
				p.Errors = append(p.Errors, guard.Detail{Message: err.Error()})
			}
		}
		return p
	}
}

// ProblemOf says how the answer to an item, or the error instead, is no answer; nil: it is
// one. It is for all faces of a server.
func ProblemOf(ctx context.Context, r engine.Result, err error) *guard.Problem {
	var failed *result.Failure
	var stage *outcome.Failure
	switch {
	case err == nil && r.Error == nil:
		return nil
	case errors.Is(err, live.ErrBusy):
		return later(http.StatusTooManyRequests, time.Second, "as many requests as may wait for this pipeline do already")
	case errors.Is(err, live.ErrStarting):
		return later(http.StatusServiceUnavailable, 2*time.Second, "the pipeline is starting: GET /readyz says when it is ready")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return guard.NewProblem(http.StatusGatewayTimeout, "the answer took longer than this server waits for one")
	case errors.Is(err, context.Canceled), ctx.Err() != nil:
		return guard.NewProblem(http.StatusServiceUnavailable, "the server is ending")
	case errors.As(err, &failed), errors.As(err, &stage):
		failed = failure(err)
	case err != nil:
		return later(http.StatusServiceUnavailable, 5*time.Second, err.Error())
	default:
		failed = r.Error
	}
	p := guard.NewProblem(http.StatusUnprocessableEntity, failed.Error())
	if p.Stage = failed.Stage; p.Stage != "" {
		p.Status, p.Title = http.StatusBadGateway, http.StatusText(http.StatusBadGateway)
	}
	return p
}

func later(status int, after time.Duration, detail string) *guard.Problem {
	p := guard.NewProblem(status, detail)
	p.RetryAfter = after
	return p
}

func unknown(name string) *guard.Problem {
	return guard.NewProblem(http.StatusNotFound, "there is no pipeline "+name+": GET /v1/pipelines lists those that there are")
}
