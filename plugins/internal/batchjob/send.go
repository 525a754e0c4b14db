package batchjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/sdk"
)

// send sends what has no reply, in as few jobs as the service takes.
func (j *Jobs) send(ctx context.Context, r *round, h handle) (*sdk.Pending, error) {
	call := r.call()
	release, err := j.reserve(ctx, call)
	if err != nil {
		return nil, j.later(handle{Jobs: h.Jobs, Round: h.Round, Mark: h.Mark, Cached: h.Cached}, err)
	}
	var ids, digests []string
	var sum Job
	parts := r.parts(j.service.Limits())
	if h.Round == 0 {
		if h.Mark, h.Cached, err = parts[0].digest, len(r.seen) > 0, j.keepCached(ctx, parts[0].digest, r.seen); err != nil {
			release(sdk.Result{Status: sdk.StatusRefused})
			return nil, err
		}
	}
	for _, p := range parts {
		job, err := j.sendPart(ctx, r, p)
		if err != nil {
			release(resultOf(err))
			return nil, refused(ctx, err)
		}
		ids, digests = append(ids, job.ID), append(digests, p.digest)
		sum.add(job)
	}
	h = h.next(ids, digests, len(r.lines.at), call)
	j.mu.Lock()
	j.held[h.String()] = release
	j.mu.Unlock()
	return j.pending(h, sum), nil
}

func (j *Jobs) sendPart(ctx context.Context, r *round, p part) (Job, error) {
	mark, before, err := j.intend(p.digest)
	if err != nil {
		return Job{}, fmt.Errorf("note that a batch is sent: %w", err)
	}
	if before {
		if job, found, err := j.service.Find(ctx, mark, len(p.ids)); found || err != nil {
			return job, err
		}
	}
	return j.service.Submit(ctx, mark, r.requests(p))
}

// resultOf is that of a reservation whose job could not be sent.
func resultOf(err error) sdk.Result {
	if sdk.CodeOf(err) == sdk.CodeTransient {
		return sdk.Result{Status: sdk.StatusDown, Reason: err.Error()}
	}
	return sdk.Result{Status: sdk.StatusRefused}
}

// refused makes of the error of sending a job one that says that no other rows would do better.
func refused(ctx context.Context, err error) error {
	switch code := sdk.CodeOf(err); {
	case ctx.Err() != nil:
		return ctx.Err()
	case code == sdk.CodeTransient || code == sdk.CodeStopped || code == sdk.CodeUnavailable:
		return err
	}
	return stopped(fmt.Errorf("the batch could not be sent: %w; batch = true needs a service that takes batches of this model", err))
}

// room is how long a reservation waits for its turn within one call.
const room = 10 * time.Second

// errNoRoom says that a reservation waits for calls that are under way.
var errNoRoom = errors.New("it waits for its turn, or until calls that are under way leave room in the budget")

// reserve asks the Host for what a job may cost.
func (j *Jobs) reserve(ctx context.Context, call sdk.Call) (func(sdk.Result), error) {
	call.Endpoint = j.client.Address()
	within, cancel := context.WithTimeoutCause(ctx, room, errNoRoom)
	defer cancel()
	release, err := j.host.Acquire(within, call)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		err = errNoRoom
	}
	return release, err
}

// hold reserves what the latest jobs of a handle take.
func (j *Jobs) hold(ctx context.Context, text string, call sdk.Call) error {
	release, err := j.reserve(ctx, call)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.held[text] != nil { // another call has done so meanwhile
		release(sdk.Result{Status: sdk.StatusRefused})
		return nil
	}
	j.held[text] = release
	return nil
}

func (j *Jobs) holds(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.held[text] != nil
}

// release ends the reservation of a handle.
func (j *Jobs) release(h handle, result sdk.Result) {
	j.mu.Lock()
	release := j.held[h.String()]
	delete(j.held, h.String())
	j.mu.Unlock()
	if release != nil {
		release(result)
	}
}

// later makes of an error of a reservation one that does not lose the handle.
func (j *Jobs) later(h handle, err error) error {
	switch {
	case errors.Is(err, errNoRoom):
		return &sdk.Pending{Handle: h.String(), PollAfter: room, Note: errNoRoom.Error()}
	case len(h.Jobs) > 0 && sdk.CodeOf(err) == sdk.CodeUnavailable: // the run is offline
		return &sdk.Error{Code: sdk.CodeUnavailable, Err: fmt.Errorf("its batch is under way: %w", err)}
	}
	return err
}

// cachedKey is where what was cached is kept.
func cachedKey(digest string) sdk.Key { return sdk.KeyOf("batchjob", "cached", digest) }

// keepCached keeps which answers were cached when the first job was made. Where that fails,
// what is cached later counts as well.
func (j *Jobs) keepCached(ctx context.Context, digest string, seen map[short]bool) error {
	if len(seen) == 0 {
		return nil
	}
	value := make([]byte, 0, len(seen)*len(short{}))
	for key := range seen {
		value = append(value, key[:]...)
	}
	if len(value) > sdk.MaxCached {
		return nil
	}
	return j.host.CachePut(ctx, cachedKey(digest), value)
}

// cached returns which answers were cached when the first job was made; nil: nobody knows.
func (j *Jobs) cached(ctx context.Context, h handle) (map[short]bool, error) {
	seen := map[short]bool{}
	if !h.Cached {
		return seen, nil
	}
	found, err := j.host.CacheGet(ctx, []sdk.Key{cachedKey(h.Mark)})
	if err != nil || found[0] == nil {
		return nil, err
	}
	for key := found[0]; len(key) >= len(short{}); key = key[len(short{}):] {
		seen[short(key)] = true
	}
	return seen, nil
}
