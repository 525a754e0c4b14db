package api

import (
	"crypto/sha256"
	"errors"
	"sync"

	"github.com/racflow/racflow/sdk"
)

// outageOf is how many requests in a row, all different, have to fail until it is the
// service that fails and not the requests: one that a server cannot stand is sent again
// and again.
const outageOf = 5

// outage tells a service that fails from requests that do. Its zero value is ready.
type outage struct {
	mu       sync.Mutex
	answered bool                       // ever
	failing  map[[sha256.Size]byte]bool // requests since the last answer
}

// judge returns the error of a request, with its result changed where the service as a
// whole fails, or has never answered and may be starting. The engine then decides how long
// to wait, and that is no retry of the request.
func (o *outage) judge(body []byte, result *sdk.Result, err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	coded, status := new(sdk.Error), new(statusError)
	switch said := errors.As(err, &status); {
	case err == nil, said && status.refusal.Status < 500, result.Status == sdk.StatusBusy:
		o.answered, o.failing = true, nil
		return err
	case !said, !errors.As(err, &coded), coded.Code != sdk.CodeTransient: // it said nothing, or not to ask again
		return err
	}
	if o.failing == nil {
		o.failing = map[[sha256.Size]byte]bool{}
	}
	if len(o.failing) < outageOf {
		o.failing[sha256.Sum256(body)] = true
	}
	if o.answered && len(o.failing) < outageOf {
		return err
	}
	result.Status, result.RetryAfter = sdk.StatusDown, requeue
	if coded.RetryAfter > 0 {
		return err
	}
	return sdk.Transient(coded.Err, requeue)
}
