package table

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	grpc_retry "github.com/grpc-ecosystem/go-grpc-middleware/retry"
	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ServerError is an error that a server reported.
type ServerError struct {
	code      int32
	reason    string
	retriable bool
}

func (e *ServerError) Error() string { return cmp.Or(e.reason, fmt.Sprintf("milvus error %d", e.code)) }

// check returns an error for every reply that reports a failure. The SDK reads only the older of two fields, and
// Milvus Lite 2 fills only the newer one; so rejected rows, bad expressions and missing collections would pass for
// success. check also keeps the SDK from retrying, which takes 22 seconds after the server has gone, whatever the
// deadline. After a write it stores the server's time, so that later reads of this process see the write.
func (s *Server) check(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
	if err := invoke(ctx, method, req, reply, cc, append(o, grpc_retry.Disable())...); err != nil {
		return status.Error(status.Code(err), s.mask(status.Convert(err).Message()))
	}
	var answer *commonpb.Status
	switch r := reply.(type) {
	case *commonpb.Status:
		answer = r
	case interface{ GetStatus() *commonpb.Status }:
		answer = r.GetStatus()
	}
	if answer.GetCode() != 0 {
		return &ServerError{answer.GetCode(), s.mask(strings.TrimSpace(answer.GetReason())), answer.GetRetriable()}
	}
	if r, ok := reply.(*milvuspb.MutationResult); ok {
		for last := s.written.Load(); r.GetTimestamp() > last && !s.written.CompareAndSwap(last, r.GetTimestamp()); {
			last = s.written.Load()
		}
	}
	return nil
}

// isTransient reports whether the same call may succeed later.
func isTransient(err error) bool {
	var e *ServerError
	if !errors.As(err, &e) {
		switch status.Code(err) {
		case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Aborted:
			return true
		}
		return errors.Is(err, context.DeadlineExceeded)
	}
	switch e.code / 100 {
	case 5, 6, 9: // channels, segments and nodes, which may be moving
		return true
	}
	return e.retriable && !IsNotLoaded(err) && !IsMissing(err) || closing.is(err)
}

// mask replaces secrets in the messages of a server or a proxy, which may quote them.
func (s *Server) mask(text string) string {
	for _, secret := range []string{s.Config.Password, s.Config.Token} {
		if secret == "" {
			continue
		}
		// They are sent in a header in base64, a password after its user.
		for _, form := range []string{s.Config.User + ":" + secret, secret} {
			text = strings.ReplaceAll(text, base64.StdEncoding.EncodeToString([]byte(form)), "***")
		}
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// refusal is an error that servers report in different ways: by a code, or in words alone.
type refusal struct {
	codes []int32
	words []string
}

// The refusals that matter here, and the engines that use these words; pkg/util/merr of Milvus lists the codes.
var (
	unauthenticated = refusal{[]int32{1400, 1401}, []string{"auth check failure"}}                     // Milvus 2.3
	notLoaded       = refusal{[]int32{101}, []string{"not loaded", "not been loaded"}}                 // Milvus Lite 2 and 3
	missing         = refusal{[]int32{100}, []string{"can't find collection", "collection not found"}} // Milvus 2.3, Milvus Lite 2
	noIndex         = refusal{[]int32{700}, nil}
	closing         = refusal{nil, []string{"channel not available"}} // Milvus 2.3, when another collection closes
	noWords         = refusal{nil, []string{"NaN or Inf value"}}      // Milvus Lite 2: BM25 without any text
)

// is reports whether err is this refusal.
func (r refusal) is(err error) bool {
	var e *ServerError
	said := func(words string) bool { return strings.Contains(e.reason, words) }
	return errors.As(err, &e) && (slices.Contains(r.codes, e.code) || slices.ContainsFunc(r.words, said))
}

// IsNotLoaded reports whether a collection is not in the server's memory, as after a restart.
func IsNotLoaded(err error) bool { return notLoaded.is(err) }

// IsMissing reports whether there is no such collection.
func IsMissing(err error) bool { return missing.is(err) }

// isUnauthenticated reports whether the server refuses the login or the user's rights.
func isUnauthenticated(err error) bool {
	return unauthenticated.is(err) || status.Code(err) == codes.Unauthenticated
}
