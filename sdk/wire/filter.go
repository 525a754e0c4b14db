package wire

import (
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// packFilters returns the filters of queries, each once, and the number of
// each query's: 0 for none. Both are nil where no query has one.
func packFilters(queries []sdk.Query) ([]*stagepb.Filter, []uint32, error) {
	var filters []*stagepb.Filter
	var numbers []uint32
	known := map[*sdk.Filter]uint32{} // queries of one search mostly share one
	equal := map[string]uint32{}
	for i := range queries {
		f := queries[i].Filter
		if f == nil {
			continue
		}
		number := known[f]
		if number == 0 {
			if err := f.Check(); err != nil {
				return nil, nil, fmt.Errorf("query %d: %w", i, err)
			}
			text := f.String()
			if number = equal[text]; number == 0 {
				filters = append(filters, encodeFilter(f))
				number = uint32(len(filters))
				equal[text] = number
			}
			known[f] = number
		}
		if numbers == nil {
			numbers = make([]uint32, len(queries))
		}
		numbers[i] = number
	}
	return filters, numbers, nil
}

// unpackFilters gives n queries their filters; those with the same number share
// one.
func unpackFilters(in []*stagepb.Filter, numbers []uint32, queries []sdk.Query) error {
	if err := optional("query_filter", len(numbers), len(queries)); err != nil {
		return err
	}
	filters := make([]sdk.Filter, len(in))
	for i := range in {
		err := decodeFilter(in[i], &filters[i], sdk.MaxFilterDepth)
		if err == nil {
			err = filters[i].Check()
		}
		if err != nil {
			return fmt.Errorf("filter %d: %w", i, err)
		}
	}
	for i, number := range numbers {
		if uint64(number) > uint64(len(filters)) {
			return fmt.Errorf("query %d has filter %d of %d", i, number, len(filters))
		}
		if number > 0 {
			queries[i].Filter = &filters[number-1]
		}
	}
	return nil
}

// encodeFilter encodes a checked filter. Its operators and fields have the
// numbers of the wire.
func encodeFilter(f *sdk.Filter) *stagepb.Filter {
	out := &stagepb.Filter{Op: stagepb.FilterOp(f.Op), Field: stagepb.Field(f.Field), Key: Valid(f.Key)}
	for i := range f.Parts {
		out.Parts = append(out.Parts, encodeFilter(&f.Parts[i]))
	}
	for _, v := range f.Values {
		value := &stagepb.Value{}
		switch v := v.(type) {
		case string:
			value.Value = &stagepb.Value_Text{Text: Valid(v)}
		case float64:
			value.Value = &stagepb.Value_Number{Number: v}
		case bool:
			value.Value = &stagepb.Value_Truth{Truth: v}
		}
		out.Values = append(out.Values, value)
	}
	return out
}

// decodeFilter fills a filter that may nest depth deep. It is not checked yet
// beyond that.
func decodeFilter(in *stagepb.Filter, f *sdk.Filter, depth int) error {
	if depth == 0 {
		return fmt.Errorf("it nests more than %d deep", sdk.MaxFilterDepth)
	}
	if op := in.GetOp(); op <= 0 || op > stagepb.FilterOp(sdk.FilterPrefix) {
		return fmt.Errorf("operator %v is unknown; a newer racflow may know it", op)
	}
	if field := in.GetField(); field < 0 || field > stagepb.Field(sdk.FieldMeta) {
		return fmt.Errorf("field %v is unknown; a newer racflow may know it", field)
	}
	f.Op, f.Field, f.Key = sdk.FilterOp(in.GetOp()), sdk.Field(in.GetField()), in.GetKey()
	if n := len(in.GetParts()); n > 0 {
		f.Parts = make([]sdk.Filter, n)
	}
	for i, part := range in.GetParts() {
		if err := decodeFilter(part, &f.Parts[i], depth-1); err != nil {
			return err
		}
	}
	for _, v := range in.GetValues() {
		switch v := v.GetValue().(type) {
		case *stagepb.Value_Text:
			f.Values = append(f.Values, v.Text)
		case *stagepb.Value_Number:
			f.Values = append(f.Values, v.Number)
		case *stagepb.Value_Truth:
			f.Values = append(f.Values, v.Truth)
		default:
			return fmt.Errorf("a value is missing")
		}
	}
	return nil
}
