package lease

import (
	"cmp"
	"slices"
	"time"
)

// turn is for how long a holder keeps one of the last calls at a time where there are fewer of
// them than holders whose calls wait.
const turn = 2 * time.Second

// share is what a holder has of the calls at a time.
type share struct {
	holder string
	held   int // calls that it may have under way, at most
	want   int // under way and waiting: the most of the last half second
	wanted [2]struct {
		at   time.Time
		most int
	}
	target int

	extra  bool      // it has one of those that cannot be parted evenly
	since  time.Time // since when
	rested time.Time // when it last had one
}

// see remembers the most that a holder wanted lately, so that shares do not follow every batch.
func (s *share) see(now time.Time, peak int) {
	if now.Sub(s.wanted[0].at) >= 300*time.Millisecond {
		s.wanted[1] = s.wanted[0]
		s.wanted[0].at, s.wanted[0].most = now, 0
	}
	s.wanted[0].most = max(s.wanted[0].most, peak)
	s.want = s.wanted[0].most
	if now.Sub(s.wanted[1].at) < time.Second {
		s.want = max(s.want, s.wanted[1].most)
	}
}

// divide sets the targets: all get what they want, or as much as all others that want more. What
// nobody wants is parted evenly, so that calls that come need not wait to be granted.
func divide(now time.Time, limit int, all []*share) {
	wants := 0
	for _, s := range all {
		wants += s.want
	}
	if len(all) == 0 {
		return
	}
	if wants <= limit {
		spare := limit - wants
		for i, s := range all {
			s.target = s.want + spare/len(all)
			if i < spare%len(all) {
				s.target++
			}
			s.extra = false
		}
		return
	}
	byWant := slices.Clone(all)
	slices.SortStableFunc(byWant, func(a, b *share) int { return cmp.Compare(a.want, b.want) })
	left, level := limit, 0
	for i, s := range byWant {
		level = left / (len(byWant) - i)
		if s.want > level {
			byWant = byWant[i:]
			break
		}
		s.target, s.extra = s.want, false
		left -= s.want
	}
	rest := left - level*len(byWant)
	slices.SortStableFunc(byWant, func(a, b *share) int { return cmp.Compare(a.rank(now, level), b.rank(now, level)) })
	for i, s := range byWant {
		s.target = level
		had := s.extra
		if s.extra = i < rest; s.extra {
			s.target++
			s.rested = now
			if !had {
				s.since = now
			}
		}
	}
}

// rank says who gets a call at a time that cannot be parted: who has one keeps it, where others
// have none for a turn; then who has had none for longest.
func (s *share) rank(now time.Time, level int) int64 {
	if s.extra && (level > 0 || now.Sub(s.since) < turn) {
		return -1 << 62
	}
	if s.rested.IsZero() {
		return -1 << 61
	}
	return s.rested.UnixNano()
}
