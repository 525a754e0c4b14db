package local

import (
	"math"
	"slices"
)

// limits say when rows go from memory to a file and when segments are merged.
type limits struct {
	rows  int   // in memory
	bytes int64 // of the log behind its base, and so of rows in memory
	// A transaction that is past these stops writing to the log. It writes its
	// rows to a file whenever there are spill times as many.
	spill int
}

func defaultLimits() limits { return limits{rows: 16 << 10, bytes: 32 << 20, spill: 4} }

const (
	// fanout is how many segments of about one size are merged into one.
	fanout = 8
	// maxParts bounds the parts in files, and those in memory, whatever their sizes.
	maxParts = 48
)

// due returns which neighbouring parts are to be merged into one, from first up
// to last, without it; none if both are 0. A part is due alone where more of its
// rows were removed than live.
//
// The others are merged by tiers: tier t has parts of fanout^t rows and more. A
// run of parts of tier t and below is due when it has fanout of tier t, so that
// a row is copied about once per tier.
func due(parts []part) (first, last int) {
	top := 0
	tiers := make([]int, len(parts))
	for i := range parts {
		living := parts[i].living()
		if parts[i].removed > living {
			return i, i + 1
		}
		tiers[i] = int(math.Log2(float64(living)) / math.Log2(fanout))
		top = max(top, tiers[i])
	}
	for tier := range top + 1 {
		from, same := 0, 0
		for i := 0; i <= len(parts); i++ {
			if i < len(parts) && tiers[i] <= tier {
				if tiers[i] == tier {
					same++
				}
				continue
			}
			if same >= fanout {
				return from, i
			}
			from, same = i+1, 0
		}
	}
	if len(parts) > maxParts {
		return smallest(parts)
	}
	return 0, 0
}

// smallest returns the fanout neighbouring parts that have the fewest rows.
func smallest(parts []part) (first, last int) {
	least := math.MaxInt
	for i := 0; i+fanout <= len(parts); i++ {
		sum := 0
		for j := range fanout {
			sum += parts[i+j].living()
		}
		if sum < least {
			least, first = sum, i
		}
	}
	return first, first + fanout
}

// settle merges the parts in memory that are due.
func (s *snapshot) settle(parts []part) ([]part, error) {
	parts = withoutEmpty(parts)
	files := filesOf(parts)
	for {
		first, last := due(parts[files:])
		if last == 0 {
			return parts, nil
		}
		first, last = first+files, last+files
		merged, err := s.inMemory(inputsOf(parts[first:last]))
		if err != nil {
			return nil, err
		}
		parts = slices.Replace(slices.Clone(parts), first, last, memoryPart(merged))
	}
}

func withoutEmpty(parts []part) []part {
	return slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return p.living() == 0 })
}

// filesOf is the number of parts that are in files. They stand in front.
func filesOf(parts []part) int {
	n := slices.IndexFunc(parts, func(p part) bool { return p.path == "" })
	if n < 0 {
		return len(parts)
	}
	return n
}

// inputsOf are the living rows of parts.
func inputsOf(parts []part) []input {
	inputs := make([]input, 0, len(parts))
	for i := range parts {
		if parts[i].living() > 0 {
			inputs = append(inputs, input{parts[i].segment, parts[i].dead})
		}
	}
	return inputs
}
