package bounded

import (
	"math"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// weigh returns roughly how many bytes a value takes as a tree, or would take as a text. It
// stops counting above most. For a number that is out of range it returns math.MaxInt.
func weigh(v cty.Value, most int) int {
	v, marks := v.Unmark()
	n := Overhead * (1 + len(marks))
	switch t := v.Type(); {
	case !v.IsKnown() || v.IsNull():
	case t == cty.String:
		text := v.AsString()
		digits := len(text) - len(strings.TrimLeft(text, "+-.0123456789"))
		n += len(text) + digits*digits/64 // what reading it as a number would take
	case t == cty.Number:
		f := v.AsBigFloat()
		exponent := f.MantExp(nil)
		if f.IsInf() || exponent < -maxDigits || exponent > maxDigits {
			return math.MaxInt
		}
		n += max(exponent, -exponent) / 3 // decimal digits
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next() && n <= most; {
			key, element := it.Element()
			w := weigh(element, most-n)
			if w == math.MaxInt {
				return w
			}
			if n += w; key.Type() == cty.String {
				n += len(key.AsString())
			}
		}
	}
	return n
}

// comparisons returns how many types a type consists of, and what it takes, in
// the worst case, to find one type for all elements: each is compared with each
// other, and those that differ are kept.
func comparisons(t cty.Type) (types, n int) {
	var inside []cty.Type
	switch {
	case t.IsTupleType():
		inside = t.TupleElementTypes()
	case t.IsObjectType():
		for _, a := range t.AttributeTypes() {
			inside = append(inside, a)
		}
	case t.IsCollectionType():
		inside = []cty.Type{t.ElementType()}
	}
	same := true
	for _, e := range inside {
		more, m := comparisons(e)
		types, n = types+more, n+m
		same = same && e.Equals(inside[0])
	}
	if same {
		return types + 1, n + types*len(inside)/8
	}
	return types + 1, n + types*len(inside)
}
