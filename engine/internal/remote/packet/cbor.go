package packet

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// text is an error that consists only of its text.
type text struct{ Text string }

func (t *text) Error() string { return t.Text }

// Types that occur behind interfaces (errors, and values of columns and metadata), by their tag
// numbers in a packet, which CBOR leaves to applications.
var tagged = map[uint64]reflect.Type{
	0x5261_0001: reflect.TypeFor[outcome.Failure](),
	0x5261_0002: reflect.TypeFor[sdk.Error](),
	0x5261_0003: reflect.TypeFor[text](),
	0x5261_0004: reflect.TypeFor[json.Number](),
	0x5261_0005: reflect.TypeFor[json.RawMessage](),
}

// maxItems exceeds the rows of a packet (stage.Gathered) and the length of any list in an item.
const maxItems = 1 << 17

var encoding, decoding = func() (cbor.EncMode, cbor.DecMode) {
	tags := cbor.NewTagSet()
	for number, of := range tagged {
		must(false, tags.Add(cbor.TagOptions{EncTag: cbor.EncTagRequired, DecTag: cbor.DecTagRequired}, of, number))
	}
	enc := must(cbor.EncOptions{
		Sort:       cbor.SortBytewiseLexical,                             // equal answers have equal bytes
		Time:       cbor.TimeRFC3339Nano,                                 // with the offset
		NaNConvert: cbor.NaNConvertNone, InfConvert: cbor.InfConvertNone, // numbers keep their form in memory
	}.EncModeWithTags(tags))
	dec := must(cbor.DecOptions{
		MaxArrayElements: maxItems, MaxMapPairs: maxItems, MaxNestedLevels: 32,
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden,
		UTF8:              cbor.UTF8DecodeInvalid,            // a row's other columns may have any bytes
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,    // unknown fields must not be lost
		DefaultMapType:    reflect.TypeFor[map[string]any](), // as in JSON
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
	}.DecModeWithTags(tags))
	return enc, dec
}()

// must panics if the library rejects the options, which every test would reveal.
func must[T any](mode T, err error) T {
	if err != nil {
		panic(err)
	}
	return mode
}

// portable reduces an error to what is sent: its text, its code and the time to wait; for an
// outcome.Failure, also the stage.
func portable(err error) error {
	if err == nil {
		return nil
	}
	if f, ok := err.(*outcome.Failure); ok { //nolint:errorlint // a wrapped Failure becomes text
		return portableFailure(f)
	}
	plain := &text{err.Error()}
	var coded *sdk.Error
	if errors.As(err, &coded) {
		return &sdk.Error{Code: coded.Code, RetryAfter: coded.RetryAfter, Err: plain}
	}
	return plain
}

func portableFailure(f *outcome.Failure) *outcome.Failure {
	if f == nil {
		return nil
	}
	return &outcome.Failure{Stage: f.Stage, Err: portable(f.Err)}
}

// sound checks a well-formed packet for impossible content: errors without text, or results without rows.
func sound(rows []row, a run.Answers) error {
	if a.Results != nil && len(a.Results) != len(rows) {
		return damaged("%d results are not those of %d rows", len(a.Results), len(rows))
	}
	for at, err := range a.Left {
		if err == nil || at < 0 || at >= len(rows) {
			return damaged("item %d of %d is left for no reason", at, len(rows))
		}
	}
	for at := range a.Bills {
		if at < 0 || at >= len(rows) {
			return damaged("there is no item %d of %d for a bill", at, len(rows))
		}
	}
	failures := slices.Clone(a.Halted)
	for i := range a.Results {
		r := &a.Results[i]
		failures = append(append(failures, r.Skipped...), r.Missing...)
		if r.Failure != nil {
			failures = append(failures, r.Failure)
		}
	}
	errs := []error{a.Ended}
	for _, f := range failures {
		if f == nil {
			return damaged("a failure is missing")
		}
		errs = append(errs, f)
	}
	for _, err := range a.Left {
		errs = append(errs, err)
	}
	for _, r := range rows {
		errs = append(errs, r.Err)
	}
	for _, err := range errs {
		if !whole(err) {
			return damaged("an error says nothing")
		}
	}
	return nil
}

// whole reports whether an error and all its wrapped errors have a text; nil is whole, too.
func whole(err error) bool {
	for {
		switch e := err.(type) { //nolint:errorlint // the errors of packets have just these types
		case *outcome.Failure:
			err = e.Err
		case *sdk.Error:
			err = e.Err
		default:
			return true
		}
		if err == nil {
			return false
		}
	}
}
