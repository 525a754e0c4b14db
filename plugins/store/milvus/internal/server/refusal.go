package server

import (
	"errors"
	"slices"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refusal is one thing that servers report, each in its own way: newer ones by a code,
// Milvus before 2.3 by another, and some in words alone.
type refusal struct {
	codes  []int32
	legacy []commonpb.ErrorCode //nolint:staticcheck // all that Milvus before 2.3 sets
	words  []string
}

// The refusals that matter here, and whose words they are.
var (
	unauthenticated = refusal{
		[]int32{codeUnauthenticated, codePrivilege}, []commonpb.ErrorCode{commonpb.ErrorCode_PermissionDenied}, //nolint:staticcheck // all that Milvus before 2.3 sets
		[]string{"auth check failure"}, // Milvus 2.3
	}
	notLoaded = refusal{
		[]int32{codeNotLoaded}, nil,
		[]string{"not loaded", "not been loaded"}, // Milvus Lite 2 and 3
	}
	missing = refusal{
		[]int32{codeNoCollection}, []commonpb.ErrorCode{commonpb.ErrorCode_CollectionNotExists, commonpb.ErrorCode_CollectionNameNotFound}, //nolint:staticcheck // all that Milvus before 2.3 sets
		[]string{"can't find collection", "collection not found"}, // Milvus 2.3, Milvus Lite 2
	}
	noIndex = refusal{[]int32{codeNoIndex}, []commonpb.ErrorCode{commonpb.ErrorCode_IndexNotExist}, nil} //nolint:staticcheck // all that Milvus before 2.3 sets
)

// is reports whether a server has refused something with an error.
func (r refusal) is(err error) bool {
	var e *Error
	return errors.As(err, &e) && (slices.Contains(r.codes, e.code) || slices.Contains(r.legacy, e.legacy) || contains(e.reason, r.words))
}

func contains(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// IsNotLoaded reports that a collection is not in the server's memory, as after
// a restart.
func IsNotLoaded(err error) bool { return notLoaded.is(err) }

// IsMissing reports that there is no such collection.
func IsMissing(err error) bool { return missing.is(err) }

// IsNoIndex reports that there is no index to describe.
func IsNoIndex(err error) bool { return noIndex.is(err) }

// isUnauthenticated reports that the server refuses the login, or the user's rights.
func isUnauthenticated(err error) bool {
	return unauthenticated.is(err) || status.Code(err) == codes.Unauthenticated
}

// wordsOfEmpty are those of the SDK where a server leaves out the columns of a result
// without rows: the first two are met with Milvus Lite 2, the last with Milvus 2.3.
var wordsOfEmpty = []string{"extra output fields", "unsupported element type None", "FieldData type not matched"}

// IsEmpty reports that an error of the SDK means that no row matched.
func IsEmpty(err error) bool {
	if _, ok := status.FromError(err); ok || errors.As(err, new(*Error)) {
		return false // of the server, not of the SDK
	}
	return contains(err.Error(), wordsOfEmpty)
}
