package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/sdk"
)

// Courier takes requests to a service in another way than each by itself: many of them in
// one job, whose replies come later.
type Courier interface {
	// Deliver calls read with the reply to a request, as soon as there is one: its status
	// and its body. read returns what the reply cost, and Deliver its error, or why there is no
	// reply.
	Deliver(d Delivery, read func(status int, body []byte) (sdk.Usage, error)) error
	// Forgets reports whether a cached answer counts as absent.
	Forgets(key sdk.Key) bool
}

// Delivery is a request for a Courier.
type Delivery struct {
	Answer sdk.Key // names what the reply is for; see For
	Again  bool    // a reply for that was delivered, and the stage asks in another way
	Path   string  // below the base address
	Body   []byte
	Call   sdk.Call // what the Host would be asked for
}

type courierKey struct{}

type answerKey struct{}

// answering is what the requests of a context are for.
type answering struct {
	key       sdk.Key
	delivered atomic.Bool
}

// For returns a context whose requests are for an answer, by its cache key. To a Courier two equal
// requests for different answers are two, and those for one answer are the same question, however it
// is asked.
func For(ctx context.Context, answer sdk.Key) context.Context {
	return context.WithValue(ctx, answerKey{}, &answering{key: answer})
}

// Through returns a context whose requests a courier takes; nil: none does.
func Through(ctx context.Context, by Courier) context.Context {
	return context.WithValue(ctx, courierKey{}, by)
}

// Later reports whether the replies to the requests of a context may come later: then it is
// of no use to wait for one before the next is made.
func Later(ctx context.Context) bool { return courierOf(ctx) != nil }

func courierOf(ctx context.Context) Courier {
	by, _ := ctx.Value(courierKey{}).(Courier)
	return by
}

// deliver is Post where a courier takes the request.
func (r *Request) deliver(ctx context.Context, by Courier, path string, body []byte, reply any) error {
	of, ok := ctx.Value(answerKey{}).(*answering)
	if !ok {
		of = &answering{}
	}
	return by.Deliver(Delivery{of.key, of.delivered.Load(), path, body, r.call(body)}, func(status int, answer []byte) (sdk.Usage, error) {
		res := &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{}}
		if _, err := r.Client.resultOf(res, answer, time.Now()); err != nil {
			return sdk.Usage{}, err
		}
		of.delivered.Store(true)
		return r.accept(r.Client.redact(answer), reply)
	})
}

// NotFound reports whether a server does not know what was asked for.
func NotFound(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && e.refusal.Status == http.StatusNotFound
}
