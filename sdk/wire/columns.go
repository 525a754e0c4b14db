package wire

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

// Valid returns s with U+FFFD in place of bytes that are not UTF-8. protobuf refuses such bytes: one
// of them would end the whole stream.
func Valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// ValidAll returns a copy of all with every string made valid.
func ValidAll(all []string) []string {
	if len(all) == 0 {
		return nil
	}
	valid := make([]string, len(all))
	for i, s := range all {
		valid[i] = Valid(s)
	}
	return valid
}

// column collects one string per row; it returns nil if all are empty.
func column[T any](rows []T, field func(*T) string) []string {
	var values []string
	for i := range rows {
		set(&values, i, len(rows), Valid(field(&rows[i])))
	}
	return values
}

// set sets value i of a column. A column whose n values are all zero is absent.
func set[T comparable](column *[]T, i, n int, value T) {
	var zero T
	if value == zero {
		return
	}
	if *column == nil {
		*column = make([]T, n)
	}
	(*column)[i] = value
}

// at returns a value of a column that may be absent.
func at[T any](column []T, i int) T {
	if len(column) == 0 {
		var none T
		return none
	}
	return column[i]
}

// whole checks that a column has a value per row.
func whole(name string, length, rows int) error {
	if length != rows {
		return fmt.Errorf("column %s has %d values for %d rows", name, length, rows)
	}
	return nil
}

// optional checks that a column is absent, or has a value per row.
func optional(name string, length, rows int) error {
	if length == 0 {
		return nil
	}
	return whole(name, length, rows)
}

// spans checks the offsets of a ragged column: there are rows + 1 offsets, from 0 to elements, and
// they never fall.
func spans(name string, offsets []uint32, rows, elements int) error {
	if rows == 0 && len(offsets) == 0 && elements == 0 {
		return nil
	}
	if err := whole(name+".offsets", len(offsets), rows+1); err != nil {
		return err
	}
	if err := few(name, elements, MaxElements); err != nil {
		return err
	}
	before := uint32(0)
	for i, o := range offsets {
		if o < before || (i == 0 && o != 0) {
			return fmt.Errorf("column %s: offset %d of row %d is out of order", name, o, i)
		}
		before = o
	}
	if int(before) != elements {
		return fmt.Errorf("column %s has %d elements, but its offsets end at %d", name, elements, before)
	}
	return nil
}

// ragged cuts a column with checked offsets into the lists of its rows.
func ragged[T any](all []T, offsets []uint32) [][]T {
	lists := make([][]T, max(len(offsets)-1, 0))
	for i := range lists {
		lo, hi := offsets[i], offsets[i+1]
		lists[i] = all[lo:hi:hi]
	}
	return lists
}

// dictionary numbers the distinct strings of a column.
type dictionary struct {
	names []string
	index map[string]uint32
}

func (d *dictionary) number(s string) uint32 {
	i, ok := d.index[s]
	if !ok {
		if d.index == nil {
			d.index = map[string]uint32{}
		}
		i = uint32(len(d.names))
		d.index[s] = i
		d.names = append(d.names, Valid(s))
	}
	return i
}

func encodeMeta(m sdk.Meta) ([]byte, error) {
	if len(m) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	return raw, nil
}

func decodeMeta(raw []byte) (sdk.Meta, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if len(raw) > MaxMeta {
		return nil, fmt.Errorf("metadata of %d bytes; there are at most %d", len(raw), MaxMeta)
	}
	var m sdk.Meta
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("metadata is not a JSON object: %w", err)
	}
	for key, value := range m {
		switch value.(type) {
		case string, float64, bool:
		default:
			return nil, fmt.Errorf("metadata %q is neither a string, a number nor a boolean", key)
		}
	}
	return m, nil
}

// metas encodes a column of metadata; it returns nil if all are empty.
func metas[T any](rows []T, field func(*T) sdk.Meta) ([][]byte, error) {
	var values [][]byte
	for i := range rows {
		raw, err := encodeMeta(field(&rows[i]))
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		if raw == nil {
			continue
		}
		if values == nil {
			values = make([][]byte, len(rows))
		}
		values[i] = raw
	}
	return values, nil
}

// Bounds on the numbers that a stage may return. They are far beyond any useful value, and so far
// below the limits of the types that sums stay finite.
const (
	// MaxWeight bounds the weight of an answer. The product of two such weights, added up over as many
	// answers as fit into memory, stays below the largest float64, 1.8e308.
	MaxWeight = 1e100
	// MaxScore bounds the absolute value of a score. The sum of a hundred million such scores fits
	// into a float32, whose largest value is 3.4e38.
	MaxScore = 1e30
	// NormTolerance is how far the norm of a vector may be from 1. A vector computed with half the
	// precision of a float32 passes; a vector that is not normalised does not.
	NormTolerance = 1e-3
	// shareTolerance is how far rounding may take a share out of 0 to 1.
	shareTolerance = 1e-9
)

// The Check functions below check the result of a stage for one row. Their errors name the value and
// its position, from 1, and nothing that a plugin wrote, so they hold no secret. The comparisons are
// written so that they are false for NaN.

// CheckVector checks that a vector has norm 1, or is all zero.
func CheckVector(v []float32) error {
	square := squareOf(v)
	if square == 0 || math.Abs(square-1) <= 2*NormTolerance {
		return nil
	}
	if err := checkFinite(v); err != nil {
		return err
	}
	return fmt.Errorf("a vector of norm %.6g; a vector has norm 1, or is all zero where a text has nothing to embed", math.Sqrt(square))
}

// CheckDirection checks that all numbers of a vector are finite; the norm may be any.
func CheckDirection(v []float32) error {
	if square := squareOf(v); square <= math.MaxFloat64 {
		return nil
	}
	return checkFinite(v)
}

// squareOf returns the square of the norm; it is finite if all numbers of v are.
func squareOf(v []float32) (square float64) {
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	return square
}

func checkFinite(v []float32) error {
	for i, x := range v {
		if !(math.Abs(float64(x)) <= math.MaxFloat32) {
			return fmt.Errorf("a vector with %v at position %d; its numbers are finite", x, i+1)
		}
	}
	return nil
}

// CheckCandidates checks that scores are within MaxScore; a leg may leave a candidate unscored.
func CheckCandidates(list []sdk.Candidate) error {
	for i := range list {
		c := &list[i]
		switch {
		case !isScore(c.Score):
			return scoreError("score", c.Score, i)
		case c.Dense == c.Dense && !isScore(c.Dense):
			return scoreError("dense score", c.Dense, i)
		case c.Lexical == c.Lexical && !isScore(c.Lexical):
			return scoreError("lexical score", c.Lexical, i)
		}
	}
	return nil
}

func scoreError(what string, score float32, candidate int) error {
	return fmt.Errorf("%s %v for candidate %d; a score is a number between -%g and %g", what, score, candidate+1, MaxScore, MaxScore)
}

func isScore(x float32) bool { return x >= -MaxScore && x <= MaxScore }

// CheckRanking checks that scores are within MaxScore.
func CheckRanking(list []sdk.Ranked) error {
	for _, r := range list {
		if !isScore(r.Score) {
			return scoreError("score", r.Score, r.Candidate)
		}
	}
	return nil
}

// CheckSamples checks that weights are from 0 to MaxWeight, distances from 0 to 1, token counts up to
// sdk.MaxTokens, and samples, answers and texts within their bounds.
func CheckSamples(list []sdk.Sample) error {
	if err := checkAmount(list); err != nil {
		return err
	}
	for i := range list {
		for n, a := range list[i].Answers {
			if !(a.Weight >= 0 && a.Weight <= MaxWeight) {
				return fmt.Errorf("weight %v for answer %d; a weight is a number from 0 to %g", a.Weight, n+1, MaxWeight)
			}
		}
		if d := list[i].Distance; !(d >= 0 && d <= 1) {
			return fmt.Errorf("distance %v; a distance is a number from 0 to 1", d)
		}
		u := list[i].Usage
		if !u.Plausible() {
			return fmt.Errorf("a count of %d tokens; a sample has at most %d", max(u.InputTokens, u.CachedTokens, u.OutputTokens), uint64(sdk.MaxTokens))
		}
	}
	return nil
}

// CheckVerdict checks that agreement and probabilities are from 0 to 1, and texts within their
// bounds.
func CheckVerdict(v sdk.Verdict) error {
	if a := v.Agreement; !(a >= -shareTolerance && a <= 1+shareTolerance) {
		return fmt.Errorf("agreement %v; an agreement is a share from 0 to 1", a)
	}
	if c := v.Confidence; !(c >= 0 && c <= 1) {
		return fmt.Errorf("confidence %v; a confidence is a probability from 0 to 1", c)
	}
	if u := v.Unknown; !(u >= 0 && u <= 1) {
		return fmt.Errorf("unknown %v; it is a probability from 0 to 1", u)
	}
	longest := max(len(v.Answer), len(v.Reason))
	for _, l := range v.Labels {
		if c := l.Confidence; !(c >= 0 && c <= 1) {
			return fmt.Errorf("confidence %v of label %q; it is a probability from 0 to 1", c, l.Label)
		}
		longest = max(longest, len(l.Label))
	}
	return checkText(longest)
}
