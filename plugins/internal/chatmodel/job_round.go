package chatmodel

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
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
	number int // of jobs one after the other so far
	// seen are the answers that were cached when the rows were first asked about; where
	// they are known, no others are seen.
	known bool
	mu    sync.Mutex
	seen  map[short]bool

	replies map[string]*answered
	good    map[string]string // by the answer that it is for: the latest reply that is a success
	lines   map[string]asked  // requests without a reply
	failed  string            // why jobs have no replies
	usage   sdk.Usage
}

func newRound() *round {
	return &round{seen: map[short]bool{}, replies: map[string]*answered{}, good: map[string]string{}, lines: map[string]asked{}}
}

// short is enough of a cache key to tell it from others.
type short [16]byte

// asked is what is known of a request, and answered of a reply.
type asked struct {
	JobLine
	order  string // puts what begins alike side by side
	tokens int
	most   sdk.Usage // zero: unknown
}

type answered struct {
	text    []byte
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
	reply := r.reply(d)
	if reply != nil {
		failed := sdk.Transient(fmt.Errorf("the service did not work on it: %s", reply.text), 0)
		if reply.status != 0 {
			var used sdk.Usage
			used, failed = read(reply.status, reply.text)
			r.count(reply, used)
		}
		switch {
		case sdk.CodeOf(failed) != sdk.CodeTransient:
			return failed
		case r.number >= jobTries:
			return sdk.Invalid(fmt.Errorf("%w; so it was in %d batches", failed, r.number))
		}
	}
	if reply == nil && r.failed != "" {
		return sdk.Invalid(errors.New(r.failed))
	}
	if r.number >= maxRounds {
		return sdk.Invalid(fmt.Errorf("it has no answer after %d batches", r.number))
	}
	order, id := sha256.Sum256(d.Body[:min(len(d.Body), beginning)]), idOf(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines[id] = asked{JobLine{id, d.Path, d.Body}, string(order[:8]), d.Call.Tokens, d.Call.Most}
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
func (r *round) reply(d api.Delivery) *answered {
	id := idOf(d)
	if reply := r.replies[id]; reply != nil || d.Again {
		return reply
	}
	return r.replies[r.good[id[:answerBytes]]]
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
	lines  []JobLine
	digest string
}

// wrapped is the most that a service wraps a body in.
const wrapped = 256

// parts divides the requests among jobs, always in the same way.
func (r *round) parts(most JobLimits) (all []part) {
	lines := slices.SortedFunc(maps.Values(r.lines), func(a, b asked) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.order, b.order), strings.Compare(a.ID, b.ID))
	})
	var bytes int64
	for i, line := range lines {
		size := int64(len(line.Body)) + wrapped
		if i == 0 || line.Path != lines[i-1].Path || len(all[len(all)-1].lines) == most.Requests || bytes+size > most.Bytes {
			all, bytes = append(all, part{}), 0
		}
		last := &all[len(all)-1]
		last.lines, bytes = append(last.lines, line.JobLine), bytes+size
	}
	for i, p := range all {
		ids := make([]string, len(p.lines))
		for k, line := range p.lines {
			ids[k] = line.ID
		}
		sum := sha256.Sum256([]byte(strings.Join(ids, " ")))
		all[i].digest = hex.EncodeToString(sum[:16])
	}
	return all
}

// call is what all requests together take.
func (r *round) call() (c sdk.Call) {
	bounded := true
	for _, line := range r.lines {
		c.Tokens += line.tokens
		c.Most.Add(line.most)
		bounded = bounded && line.most != sdk.Usage{}
	}
	if !bounded {
		c.Most = sdk.Usage{}
	}
	c.Batch = true
	return c
}
