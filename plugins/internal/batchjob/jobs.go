package batchjob

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// Jobs are those of one stage. Their methods may be called by several goroutines at once.
type Jobs struct {
	service Service
	client  *api.Client
	host    sdk.Host
	dir     string // of intents; empty: none

	mu   sync.Mutex
	held map[string]func(sdk.Result) // reservations, by handle
}

// New returns the jobs of a stage that asks by a client.
func New(service Service, client *api.Client, setup sdk.Setup) *Jobs {
	j := &Jobs{service: service, client: client, host: setup.Host, held: map[string]func(sdk.Result){}}
	if j.host == nil {
		j.host = sdk.Alone()
	}
	if setup.StateDir != "" {
		j.dir = filepath.Join(setup.StateDir, "batches")
	}
	return j
}

// Do does the work of a stage on some rows: work is what it would do for single calls, an
// error of single rows being sdk.RowErrors. handle is what an earlier *sdk.Pending for these rows, or more,
// named; empty: there was none. The error is *sdk.Pending where the results come later.
func Do[R any](ctx context.Context, j *Jobs, handle string, work func(context.Context) (R, error)) (results R, err error) {
	err = j.do(ctx, handle, func(ctx context.Context) (err error) {
		results, err = work(ctx)
		return err
	})
	return results, err
}

func (j *Jobs) do(ctx context.Context, text string, work func(context.Context) error) error {
	h, err := readHandle(text)
	if err != nil {
		return sdk.Invalid(fmt.Errorf("a handle that is none of a batch: %w", err))
	}
	if len(h.Jobs) == 0 {
		r := &round{seen: map[short]bool{}}
		defer r.close()
		return j.pass(ctx, r, h, work)
	}
	for _, digest := range h.Digests {
		j.forget(digest)
	}
	if !j.holds(text) {
		// Another process may have read the replies, and was killed before that was noted.
		r := &round{probes: true, seen: map[short]bool{}}
		if err := work(api.Through(ctx, r)); !r.missing {
			return err
		}
		if err := j.hold(ctx, text, h.call()); err != nil {
			return j.later(h, err)
		}
	}
	jobs, later, err := j.ended(ctx, h)
	if later != nil || err != nil {
		return either(later, err)
	}
	r := &round{number: h.Round, good: map[string]string{}}
	defer r.close()
	if err := j.read(ctx, r, h, jobs); err != nil {
		return j.unreachable(ctx, h, err)
	}
	return j.pass(ctx, r, h, work)
}

// pass does the work once, and sends what has no reply.
func (j *Jobs) pass(ctx context.Context, r *round, h handle, work func(context.Context) error) error {
	err := work(api.Through(ctx, r))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if rows := (sdk.RowErrors{}); err != nil && !errors.As(err, &rows) {
		return err
	}
	j.release(h, sdk.Result{Status: sdk.StatusOK, Usage: r.usage})
	if len(r.lines.at) == 0 {
		return err
	}
	later, failed := j.send(ctx, r, h)
	if code := sdk.CodeOf(failed); code == sdk.CodeInvalid || code == sdk.CodeUnavailable { // no better for fewer rows
		return instead(err, failed)
	}
	return either(later, failed)
}

// instead gives rows that wait for an answer another error.
func instead(err, by error) error {
	var rows sdk.RowErrors
	if !errors.As(err, &rows) {
		return by
	}
	for row := range rows {
		if errors.Is(rows[row], errLater) {
			rows[row] = by
		}
	}
	return rows
}

func either(later *sdk.Pending, err error) error {
	if err != nil {
		return err
	}
	return later
}

// ended asks how far the latest jobs are. It returns all jobs, oldest first, once those have ended.
func (j *Jobs) ended(ctx context.Context, h handle) ([]Job, *sdk.Pending, error) {
	jobs := make([]Job, len(h.Jobs))
	var sum Job
	waits := false
	for i := len(jobs) - 1; i >= 0; i-- {
		if i == len(jobs)-h.Latest-1 && waits {
			break
		}
		job, err := j.service.Status(ctx, h.Jobs[i])
		switch {
		case api.NotFound(err):
			return nil, nil, sdk.Invalid(fmt.Errorf("the service does not know the batch %s any more: %w; the next run asks anew", h.Jobs[i], err))
		case err != nil:
			return nil, nil, j.unreachable(ctx, h, err)
		}
		jobs[i], waits = job, waits || !job.Ended
		sum.add(job)
	}
	if waits {
		return nil, j.pending(h, sum), nil
	}
	return jobs, nil, nil
}

// add sums up how far jobs are.
func (j *Job) add(other Job) {
	j.Done, j.Within, j.PollAfter = j.Done+other.Done, max(j.Within, other.Within), max(j.PollAfter, other.PollAfter)
}

// pending says that the latest jobs are under way.
func (j *Jobs) pending(h handle, sum Job) *sdk.Pending {
	what := "batch of"
	if h.Latest > 1 {
		what = fmt.Sprintf("%d batches of", h.Latest)
	}
	note := fmt.Sprintf("%s %d requests, %d done", what, h.Requests, sum.Done)
	if h.Requests == 1 {
		note = fmt.Sprintf("%s 1 request, %d done", what, sum.Done)
	}
	if sum.Within > 0 {
		note += fmt.Sprintf(", at most %s", span(sum.Within))
	}
	return &sdk.Pending{Handle: h.String(), PollAfter: sum.PollAfter, Note: note}
}

// span shows a time in whole hours, or minutes where it has none.
func span(d time.Duration) string {
	if d >= time.Hour {
		return fmt.Sprintf("%d h", (d+time.Hour-1)/time.Hour)
	}
	return fmt.Sprintf("%d min", (d+time.Minute-1)/time.Minute)
}

// bearing is how long the service may fail to say how a batch is, from when it was sent.
const bearing = 26 * time.Hour

// unreachable makes of an error of asking for a job one that does not lose the handle: the
// job is there and is paid for.
func (j *Jobs) unreachable(ctx context.Context, h handle, err error) error {
	coded := new(sdk.Error)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &coded) && coded.Code == sdk.CodeTransient && time.Since(h.Since) < bearing:
		return &sdk.Pending{Handle: h.String(), PollAfter: coded.RetryAfter, Note: "the service does not say how far the batch is: " + err.Error()}
	}
	return stopped(fmt.Errorf("the batch is under way and its answers cannot be fetched: %w; --resume fetches them", err))
}

func stopped(err error) error { return &sdk.Error{Code: sdk.CodeStopped, Err: err} }

// read puts the replies of jobs into a round, those of the later ones in the place of those
// of earlier ones.
func (j *Jobs) read(ctx context.Context, r *round, h handle, jobs []Job) error {
	seen, err := j.cached(ctx, h)
	if err != nil {
		return err
	}
	if r.seen = seen; seen != nil {
		r.known = true
	} else {
		r.seen = map[short]bool{}
	}
	for i, job := range jobs {
		latest := i >= len(jobs)-h.Latest
		if latest && job.Failed != "" {
			r.failed = job.Failed
		}
		err := j.service.Replies(ctx, job, func(reply Reply) error {
			if reply.Status >= 200 && reply.Status < 300 && len(reply.ID) > answerBytes {
				r.good[reply.ID[:answerBytes]] = reply.ID
			}
			return r.replies.put(reply.ID, reply.Body, answered{status: reply.Status, latest: latest})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
