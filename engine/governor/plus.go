package governor

import "slices"

// Plus adds what was called elsewhere, for the same stages or others.
func (s Snapshot) Plus(other Snapshot) Snapshot {
	s.Stages = slices.Clone(s.Stages)
	for _, stage := range other.Stages {
		at, found := slices.BinarySearchFunc(s.Stages, stage.Stage, func(c StageCounts, name string) int {
			switch {
			case c.Stage < name:
				return -1
			case c.Stage > name:
				return 1
			}
			return 0
		})
		if found {
			s.Stages[at].add(stage.Counts)
		} else {
			s.Stages = slices.Insert(s.Stages, at, stage)
		}
	}
	s.Total.add(other.Total)
	return s
}
