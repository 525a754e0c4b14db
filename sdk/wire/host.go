package wire

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodeKeys makes bytes of keys.
func EncodeKeys(keys []sdk.Key) [][]byte {
	all := make([][]byte, len(keys))
	for i := range keys {
		all[i] = keys[i][:]
	}
	return all
}

// DecodeKey returns the key of bytes.
func DecodeKey(b []byte) (k sdk.Key, err error) {
	if len(b) != len(k) {
		return k, fmt.Errorf("a key of %d bytes; it has %d", len(b), len(k))
	}
	return sdk.Key(b), nil
}

// EncodeCached makes messages of cached values.
func EncodeCached(values [][]byte) []*stagepb.CachedValue {
	all := make([]*stagepb.CachedValue, len(values))
	for i, v := range values {
		all[i] = &stagepb.CachedValue{Known: v != nil, Value: v}
	}
	return all
}

// DecodeCached returns the n values of messages, nil for those that are unknown.
func DecodeCached(all []*stagepb.CachedValue, n int) ([][]byte, error) {
	if err := whole("values", len(all), n); err != nil {
		return nil, err
	}
	values := make([][]byte, n)
	for i, k := range all {
		if k.GetKnown() {
			values[i] = append([]byte{}, k.GetValue()...) // not nil
		}
	}
	return values, nil
}

// EncodeCall makes a message of a call.
func EncodeCall(c sdk.Call) *stagepb.Call {
	return &stagepb.Call{
		Endpoint: Valid(c.Endpoint), Tokens: uint32(min(max(c.Tokens, 0), 1<<31)),
		MostInputTokens: c.Most.InputTokens, MostOutputTokens: c.Most.OutputTokens, Batch: c.Batch, Alternative: c.Alternative,
	}
}

// DecodeCall returns the call of a message.
func DecodeCall(c *stagepb.Call) sdk.Call {
	return sdk.Call{
		Endpoint: c.GetEndpoint(), Tokens: int(c.GetTokens()),
		Most: sdk.Usage{InputTokens: c.GetMostInputTokens(), OutputTokens: c.GetMostOutputTokens()}, Batch: c.GetBatch(), Alternative: c.GetAlternative(),
	}
}

// EncodeResult makes a message of a result.
func EncodeResult(o sdk.Result) *stagepb.Result {
	after := (o.RetryAfter + time.Millisecond - 1) / time.Millisecond
	return &stagepb.Result{
		Status: statuses[o.Status], RetryAfterMs: uint32(min(max(after, 0), math.MaxUint32)),
		InputTokens: o.Usage.InputTokens, CachedTokens: o.Usage.CachedTokens, OutputTokens: o.Usage.OutputTokens,
		Reason: strings.ToValidUTF8(o.Reason, "?"), Lost: o.Lost,
	}
}

// DecodeResult returns the result of a message. A status that is unknown says
// nothing about the service.
func DecodeResult(d *stagepb.Result) sdk.Result {
	status, ok := key(statuses, d.GetStatus())
	if !ok {
		status = sdk.StatusLeft
	}
	return sdk.Result{
		Status: status, RetryAfter: time.Duration(d.GetRetryAfterMs()) * time.Millisecond,
		Usage:  sdk.Usage{InputTokens: d.GetInputTokens(), CachedTokens: d.GetCachedTokens(), OutputTokens: d.GetOutputTokens()},
		Reason: d.GetReason(), Lost: d.GetLost(),
	}
}
