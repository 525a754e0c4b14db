package chatmodel

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

const (
	jobTries  = 5  // jobs in which a request may fail
	maxRounds = 12 // jobs one after the other, whatever they are for
)

// errLater is the error of a request whose reply comes later.
var errLater = errors.New("its answer comes with the batch that it is sent in")

// round is one time that a stage does its work: what it sees of the cache, the replies that
// there are, and the requests that have none.
type round struct {
	number int  // of jobs one after the other so far
	probes bool // requests without a reply are not kept
	// seen are the answers that were cached when the rows were first asked about; where
	// they are known, no others are seen.
	known bool
	mu    sync.Mutex
	seen  map[short]bool

	replies store[answered]
	good    map[string]string // by the answer that it is for: the latest reply that is a success
	lines   store[asked]
	missing bool   // a request had no reply
	failed  string // why jobs have no replies
	usage   sdk.Usage
}

// short is enough of a cache key to tell it from others.
type short [16]byte

// asked is what is known of a request, and answered of a reply.
type asked struct {
	path   string
	order  string // puts what begins alike side by side
	tokens int
	most   sdk.Usage // zero: unknown
}

type answered struct {
	status  int
	latest  bool // of the latest jobs
	counted bool // its usage
}

var _ api.Courier = (*round)(nil)

// Forgets implements api.Courier.
func (r *round) Forgets(key sdk.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known {
		r.seen[short(key[:])] = true
		return false
	}
	return !r.seen[short(key[:])]
}

// beginning is how much of requests has to be the same for them to stand side by side.
const beginning = 4 << 10

// Deliver implements api.Courier.
func (r *round) Deliver(d api.Delivery, read func(int, []byte) (sdk.Usage, error)) error {
	text, about, err := r.reply(d)
	if err != nil {
		return err
	}
	if about != nil {
		failed := sdk.Transient(fmt.Errorf("the service did not work on it: %s", text), 0)
		if about.status != 0 {
			var used sdk.Usage
			used, failed = read(about.status, text)
			r.count(about, used)
		}
		switch {
		case sdk.CodeOf(failed) != sdk.CodeTransient:
			return failed
		case r.number >= jobTries:
			return sdk.Invalid(fmt.Errorf("%w; so it was in %d batches", failed, r.number))
		}
	}
	if about == nil && r.failed != "" {
		return sdk.Invalid(errors.New(r.failed))
	}
	if r.number >= maxRounds {
		return sdk.Invalid(fmt.Errorf("it has no answer after %d batches", r.number))
	}
	r.mu.Lock()
	r.missing = true
	r.mu.Unlock()
	if r.probes {
		return errLater
	}
	order := sha256.Sum256(d.Body[:min(len(d.Body), beginning)])
	if err := r.lines.put(idOf(d), d.Body, asked{d.Path, string(order[:8]), d.Call.Tokens, d.Call.Most}); err != nil {
		return err
	}
	return errLater
}

const (
	// answerBytes is how much of a request's name is that of the answer that it is for.
	answerBytes = 16
	sentBytes   = 12
)

// idOf names a request by what it is for and by what is sent.
func idOf(d api.Delivery) string {
	digest := func(size int, parts ...string) string {
		h := sha256.New()
		for _, part := range parts {
			fmt.Fprintf(h, "%d %s", len(part), part)
		}
		return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:size*3/4])
	}
	answer := string(d.Answer[:])
	if d.Answer == (sdk.Key{}) {
		answer = string(d.Body)
	}
	return digest(answerBytes, answer) + digest(sentBytes, d.Path, string(d.Body))
}

// reply returns the reply to a request. What is known of a model changes how it is asked, so
// the same may have been asked in another way when the batch was sent: a reply to that is one, unless
// the stage has read it and asks again.
func (r *round) reply(d api.Delivery) ([]byte, *answered, error) {
	id := idOf(d)
	text, about, err := r.replies.get(id)
	if about == nil && err == nil && !d.Again {
		return r.replies.get(r.good[id[:answerBytes]])
	}
	return text, about, err
}

// count adds what a reply cost, once.
func (r *round) count(of *answered, used sdk.Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of.latest && !of.counted && used.Plausible() {
		of.counted = true
		r.usage.Add(used)
	}
}

// part is the requests of one job.
type part struct {
	ids    []string
	digest string
}

// wrapped is the most that a service wraps a body in.
const wrapped = 256

// parts divides the requests among jobs, always in the same way.
func (r *round) parts(most JobLimits) (all []part) {
	ids := make([]string, 0, len(r.lines.at))
	for id := range r.lines.at {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		x, y := r.lines.at[a].about, r.lines.at[b].about
		return cmp.Or(strings.Compare(x.path, y.path), strings.Compare(x.order, y.order), strings.Compare(a, b))
	})
	var bytes int64
	for i, id := range ids {
		size := int64(r.lines.at[id].size) + wrapped
		if i == 0 || r.lines.at[id].about.path != r.lines.at[ids[i-1]].about.path ||
			len(all[len(all)-1].ids) == most.Requests || bytes+size > most.Bytes {
			all, bytes = append(all, part{}), 0
		}
		last := &all[len(all)-1]
		last.ids, bytes = append(last.ids, id), bytes+size
	}
	for i := range all {
		sum := sha256.Sum256([]byte(strings.Join(all[i].ids, " ")))
		all[i].digest = hex.EncodeToString(sum[:16])
	}
	return all
}

// requests are those of a part.
func (r *round) requests(p part) JobRequests {
	return JobRequests{Count: len(p.ids), Each: func(yield func(JobLine, error) bool) {
		for _, id := range p.ids {
			body, about, err := r.lines.get(id)
			if err != nil {
				yield(JobLine{}, err)
				return
			}
			if !yield(JobLine{ID: id, Path: about.path, Body: body}, nil) {
				return
			}
		}
	}}
}

// call is what all requests together take.
func (r *round) call() (c sdk.Call) {
	bounded := true
	for _, k := range r.lines.at {
		c.Tokens += k.about.tokens
		c.Most.Add(k.about.most)
		bounded = bounded && k.about.most != sdk.Usage{}
	}
	if !bounded {
		c.Most = sdk.Usage{}
	}
	c.Batch = true
	return c
}

func (r *round) close() {
	r.lines.close()
	r.replies.close()
}
