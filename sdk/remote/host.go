package remote

import (
	"context"
	"errors"
	"sync"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// desk answers what a plugin asks of the engine.
type desk struct {
	host sdk.Host // nil: nothing is shared
	ctx  context.Context
	send func(*stagepb.Request)

	mu    sync.Mutex
	calls map[uint64]*call // admitted or waiting to be
	ended bool
}

// call is one that a plugin has asked to be admitted.
type call struct {
	withdraw context.CancelFunc
	release  func(sdk.Result) // nil: it is not admitted yet
	outcome  *sdk.Result      // told before it was admitted
}

var errNoHost = errors.New("nothing is shared here: this stage was started without an engine's services")

// maxCalls bounds what a plugin can have open, so that one that never tells how
// its calls end is found out.
const maxCalls = 4096

// handle works on one request of the plugin. It returns at once.
func (d *desk) handle(req *stagepb.HostRequest) {
	switch body := req.GetBody().(type) {
	case *stagepb.HostRequest_Done:
		d.end(req.GetId(), wire.DecodeResult(body.Done))
	case *stagepb.HostRequest_Admit:
		d.admit(req.GetId(), sdk.Call{
			Endpoint: body.Admit.GetEndpoint(), Tokens: int(body.Admit.GetTokens()),
			Most: sdk.Usage{InputTokens: body.Admit.GetMostInputTokens(), OutputTokens: body.Admit.GetMostOutputTokens()},
		})
	default:
		go func() { d.reply(req.GetId(), func(r *stagepb.HostReply) error { return d.work(req, r) }) }()
	}
}

func (d *desk) reply(id uint64, work func(*stagepb.HostReply) error) {
	r := &stagepb.HostReply{Id: id}
	if err := work(r); err != nil {
		r = &stagepb.HostReply{Id: id, Failure: wire.EncodeFailure(err)}
	}
	d.send(&stagepb.Request{Body: &stagepb.Request_Host{Host: r}})
}

func (d *desk) work(req *stagepb.HostRequest, reply *stagepb.HostReply) error {
	if d.host == nil {
		return errNoHost
	}
	switch body := req.GetBody().(type) {
	case *stagepb.HostRequest_Recall:
		keys := make([]sdk.Key, len(body.Recall.GetKeys()))
		for i, b := range body.Recall.GetKeys() {
			var err error
			if keys[i], err = wire.DecodeKey(b); err != nil {
				return sdk.Invalid(err)
			}
		}
		values, err := d.host.CacheGet(d.ctx, keys)
		if err == nil {
			reply.Kept = wire.EncodeCached(values)
		}
		return err
	case *stagepb.HostRequest_Keep:
		key, err := wire.DecodeKey(body.Keep.GetKey())
		if err != nil {
			return sdk.Invalid(err)
		}
		if len(body.Keep.GetValue()) > sdk.MaxCached {
			return sdk.Invalid(errors.New("the value is too large to be kept"))
		}
		return d.host.CachePut(d.ctx, key, append([]byte{}, body.Keep.GetValue()...)) // not nil where it is empty
	}
	return sdk.Invalid(errors.New("the plugin asks for something that this racflow does not know; update racflow"))
}

// admit asks the host and answers the plugin when it may send its call. The id
// is known when admit returns, so that no withdrawal comes too early.
func (d *desk) admit(id uint64, c sdk.Call) {
	ctx, withdraw := context.WithCancel(d.ctx)
	entry := &call{withdraw: withdraw}
	refuse := error(nil)
	d.mu.Lock()
	switch {
	case d.host == nil:
		refuse = errNoHost
	case d.calls[id] != nil:
		refuse = sdk.Invalid(errors.New("the plugin uses one id for two calls"))
	case len(d.calls) >= maxCalls:
		refuse = errors.New("the plugin does not tell how its calls end")
	default:
		d.calls[id] = entry
	}
	d.mu.Unlock()
	go d.reply(id, func(*stagepb.HostReply) error {
		if refuse != nil {
			withdraw()
			return refuse
		}
		release, err := d.host.Acquire(ctx, c)
		if err != nil {
			d.forget(id)
			withdraw()
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		entry.release = func(o sdk.Result) { release(o); withdraw() }
		if d.ended {
			entry.outcome = &sdk.Result{Status: sdk.StatusLeft}
		}
		if entry.outcome != nil {
			delete(d.calls, id)
			entry.release(*entry.outcome)
		}
		return nil
	})
}

func (d *desk) forget(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.calls, id)
}

// end passes on how a call ended.
func (d *desk) end(id uint64, o sdk.Result) {
	d.mu.Lock()
	entry := d.calls[id]
	if entry == nil {
		d.mu.Unlock()
		return // it was refused, or has been told already
	}
	if entry.release == nil {
		entry.outcome = &o
		d.mu.Unlock()
		entry.withdraw()
		return
	}
	delete(d.calls, id)
	d.mu.Unlock()
	entry.release(o)
}

// close ends the calls that a plugin has left open with its stream.
func (d *desk) close() {
	d.mu.Lock()
	d.ended = true
	var open []uint64
	for id := range d.calls {
		open = append(open, id)
	}
	d.mu.Unlock()
	for _, id := range open {
		d.end(id, sdk.Result{Status: sdk.StatusLeft})
	}
}
