package wire

import (
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/fuse"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// The names of the SDK and their numbers on the wire.
var (
	kinds = map[sdk.Kind]stagepb.Kind{
		sdk.KindEmbed:  stagepb.Kind_KIND_EMBED,
		sdk.KindStore:  stagepb.Kind_KIND_STORE,
		sdk.KindPrompt: stagepb.Kind_KIND_PROMPT,
		sdk.KindSample: stagepb.Kind_KIND_SAMPLE,
		sdk.KindElect:  stagepb.Kind_KIND_ELECT,
		sdk.KindRerank: stagepb.Kind_KIND_RERANK,
		sdk.KindChunk:  stagepb.Kind_KIND_CHUNK,
		sdk.KindEnrich: stagepb.Kind_KIND_ENRICH,
	}
	argumentTypes = map[sdk.ArgumentType]stagepb.ArgumentType{
		sdk.TypeString:     stagepb.ArgumentType_ARGUMENT_TYPE_STRING,
		sdk.TypeInt:        stagepb.ArgumentType_ARGUMENT_TYPE_INT,
		sdk.TypeFloat:      stagepb.ArgumentType_ARGUMENT_TYPE_FLOAT,
		sdk.TypeBool:       stagepb.ArgumentType_ARGUMENT_TYPE_BOOL,
		sdk.TypeDuration:   stagepb.ArgumentType_ARGUMENT_TYPE_DURATION,
		sdk.TypePath:       stagepb.ArgumentType_ARGUMENT_TYPE_PATH,
		sdk.TypeStringList: stagepb.ArgumentType_ARGUMENT_TYPE_STRING_LIST,
		sdk.TypeStringMap:  stagepb.ArgumentType_ARGUMENT_TYPE_STRING_MAP,
		sdk.TypeNumberList: stagepb.ArgumentType_ARGUMENT_TYPE_NUMBER_LIST,
		sdk.TypeNumberMap:  stagepb.ArgumentType_ARGUMENT_TYPE_NUMBER_MAP,
		sdk.TypeListMap:    stagepb.ArgumentType_ARGUMENT_TYPE_LIST_MAP,
		sdk.TypeBlock:      stagepb.ArgumentType_ARGUMENT_TYPE_BLOCK,
	}
	modes = map[sdk.Mode]stagepb.Mode{
		sdk.ModeHybrid:  stagepb.Mode_MODE_HYBRID,
		sdk.ModeDense:   stagepb.Mode_MODE_DENSE,
		sdk.ModeLexical: stagepb.Mode_MODE_LEXICAL,
	}
	fusions = map[string]stagepb.Fusion{
		fuse.Weighted: stagepb.Fusion_FUSION_WEIGHTED,
		fuse.RRF:      stagepb.Fusion_FUSION_RRF,
	}
	codes = map[sdk.Code]stagepb.Code{
		sdk.CodeInternal:  stagepb.Code_CODE_INTERNAL,
		sdk.CodeInvalid:   stagepb.Code_CODE_INVALID,
		sdk.CodeTransient: stagepb.Code_CODE_TRANSIENT,
		sdk.CodeCancelled: stagepb.Code_CODE_CANCELLED,
		sdk.CodeDeadline:  stagepb.Code_CODE_DEADLINE,

		sdk.CodeUnavailable: stagepb.Code_CODE_UNAVAILABLE,
		sdk.CodeStopped:     stagepb.Code_CODE_STOPPED,
		sdk.CodeRefused:     stagepb.Code_CODE_REFUSED,
	}
	statuses = map[sdk.Status]stagepb.Status{
		sdk.StatusOK:   stagepb.Status_STATUS_OK,
		sdk.StatusBusy: stagepb.Status_STATUS_BUSY,
		sdk.StatusDown: stagepb.Status_STATUS_DOWN,
		sdk.StatusLeft: stagepb.Status_STATUS_LEFT,

		sdk.StatusRefused: stagepb.Status_STATUS_REFUSED,
		sdk.StatusDenied:  stagepb.Status_STATUS_DENIED,
	}
)

// key finds the name of a number; there is none for unspecified ones.
func key[K, V comparable](names map[K]V, number V) (K, bool) {
	for k, v := range names {
		if v == number {
			return k, true
		}
	}
	var none K
	return none, false
}

// EncodeKind returns the number of a kind.
func EncodeKind(k sdk.Kind) stagepb.Kind { return kinds[k] }

// DecodeKind returns the kind of a number, or false for one that is unknown.
func DecodeKind(k stagepb.Kind) (sdk.Kind, bool) { return key(kinds, k) }
