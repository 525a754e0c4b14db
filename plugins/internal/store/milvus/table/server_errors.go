package table

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	grpc_retry "github.com/grpc-ecosystem/go-grpc-middleware/retry"
	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ServerError is a failure that a server answered with.
type ServerError struct {
	code      int32              // of Milvus 2.3 and newer; 0: not given
	legacy    commonpb.ErrorCode //nolint:staticcheck // of before
	reason    string
	retriable bool
}

func (e *ServerError) Error() string {
	if e.reason == "" {
		return fmt.Sprintf("milvus error %d (%v)", e.code, e.legacy)
	}
	return e.reason
}

// The codes of Milvus that matter here; pkg/util/merr of its sources lists all.
const (
	codeNotReady        = 1
	codeUnavailable     = 2
	codeTooManyRequests = 4
	codeRateLimit       = 8
	codeNoCollection    = 100
	codeNotLoaded       = 101
	codeNotFullyLoaded  = 103
	codeNoIndex         = 700
	codeUnauthenticated = 1400
	codePrivilege       = 1401
	// The hundreds of what may be on its way from one node to another.
	codesOfChannels = 5
	codesOfSegments = 6
	codesOfNodes    = 9
)

// checkStatus makes an error of every reply that reports a failure. The SDK reads
// only the older of two fields; Milvus Lite 2 fills only the newer one, and
// rejected rows, bad expressions and missing collections would pass for success. It
// also keeps the SDK from retrying: that takes 22 seconds after the server has
// gone, whatever the deadline.
func checkStatus(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
	if err := invoke(ctx, method, req, reply, cc, append(o, grpc_retry.Disable())...); err != nil {
		return err
	}
	var s *commonpb.Status
	switch r := reply.(type) {
	case *commonpb.Status:
		s = r
	case interface{ GetStatus() *commonpb.Status }:
		s = r.GetStatus()
	}
	legacy := s.GetErrorCode() //nolint:staticcheck // all that Milvus before 2.3 sets
	if s.GetCode() == 0 && legacy == commonpb.ErrorCode_Success {
		return nil
	}
	return &ServerError{s.GetCode(), legacy, strings.TrimSpace(s.GetReason()), s.GetRetriable()}
}

// IsUnimplemented reports that the server has no such call.
func IsUnimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }

// isTransient reports that the same call may succeed later.
func isTransient(err error) bool {
	var e *ServerError
	if !errors.As(err, &e) {
		switch status.Code(err) {
		case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Aborted:
			return true
		}
		return errors.Is(err, context.DeadlineExceeded)
	}
	switch e.code {
	case codeNotReady, codeUnavailable, codeTooManyRequests, codeRateLimit, codeNotFullyLoaded:
		return true
	}
	switch e.code / 100 {
	case codesOfChannels, codesOfSegments, codesOfNodes:
		return true
	}
	if strings.Contains(e.reason, "channel not available") { // 2.3 gives no code for a channel that the end of another collection closes
		return true
	}
	return e.retriable && e.code != codeNotLoaded && e.code != codeNoCollection || e.legacy == commonpb.ErrorCode_RateLimit
}

// mask replaces the secrets in an error's text, in case a server or a library
// quotes them.
func (s *Server) mask(err error) error {
	if err == nil {
		return nil
	}
	masked := err.Error()
	for _, secret := range []string{s.Config.Password, s.Config.Token} {
		if secret != "" {
			// They travel as a header in base64, a password behind its user.
			for _, header := range []string{secret, s.Config.User + ":" + secret} {
				masked = strings.ReplaceAll(masked, base64.StdEncoding.EncodeToString([]byte(header)), "***")
			}
			masked = strings.ReplaceAll(masked, secret, "***")
		}
	}
	if masked == err.Error() {
		return err
	}
	return &maskedError{masked, err}
}

// maskedError has another text than its cause.
type maskedError struct {
	text  string
	cause error
}

func (e *maskedError) Error() string { return e.text }

// Is and As look at the cause; there is no Unwrap, which would give away its text.
func (e *maskedError) Is(target error) bool { return errors.Is(e.cause, target) }
func (e *maskedError) As(target any) bool   { return errors.As(e.cause, target) }

// refusal is one thing that servers report, each in its own way: by a code or in words alone.
type refusal struct {
	codes []int32
	words []string
}

// The refusals that matter here, and whose words they are.
var (
	unauthenticated = refusal{[]int32{codeUnauthenticated, codePrivilege}, []string{"auth check failure"}}          // Milvus 2.3
	notLoaded       = refusal{[]int32{codeNotLoaded}, []string{"not loaded", "not been loaded"}}                    // Milvus Lite 2 and 3
	missing         = refusal{[]int32{codeNoCollection}, []string{"can't find collection", "collection not found"}} // Milvus 2.3, Milvus Lite 2
	noIndex         = refusal{[]int32{codeNoIndex}, nil}
	noWords         = refusal{nil, []string{"NaN or Inf value"}} // Milvus Lite 2: BM25 divides by the mean length of no texts
)

// is reports whether a server has refused something with an error.
func (r refusal) is(err error) bool {
	var e *ServerError
	return errors.As(err, &e) && (slices.Contains(r.codes, e.code) || contains(e.reason, r.words))
}

func contains(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// IsNotLoaded reports that a collection is not in the server's memory, as after
// a restart.
func IsNotLoaded(err error) bool { return notLoaded.is(err) }

// IsMissing reports that there is no such collection.
func IsMissing(err error) bool { return missing.is(err) }

// isUnauthenticated reports that the server refuses the login, or the user's rights.
func isUnauthenticated(err error) bool {
	return unauthenticated.is(err) || status.Code(err) == codes.Unauthenticated
}
