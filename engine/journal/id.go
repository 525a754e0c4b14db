package journal

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// idPattern is what the name of a run looks like: when it began (UTC), to the
// second and then in 2^-24 of it. Names rise in the order in which runs began,
// also where the clock was set back between them: see nextID.
var idPattern = regexp.MustCompile(`^\d{8}-\d{6}-[0-9a-f]{6}$`)

const (
	idSeconds = "20060102-150405"
	idParts   = 1 << 24 // of a second
)

// IsID reports whether a text could name a run.
func IsID(text string) bool {
	if !idPattern.MatchString(text) {
		return false
	}
	_, err := time.Parse(idSeconds, text[:len(idSeconds)])
	return err == nil
}

func newID(second time.Time, part int64) string {
	return fmt.Sprintf("%s-%06x", second.Format(idSeconds), part)
}

// nextID names a run that begins now, where there are runs with these names,
// sorted. Where the clock is not behind the newest, the name is that one's
// successor.
func nextID(now time.Time, ids []string) string {
	id := newID(now, int64(now.Nanosecond())*idParts/int64(time.Second))
	if len(ids) == 0 || id > ids[len(ids)-1] {
		return id
	}
	newest := ids[len(ids)-1]
	second, _ := time.Parse(idSeconds, newest[:len(idSeconds)])    // IsID has read it
	part, _ := strconv.ParseInt(newest[len(idSeconds)+1:], 16, 64) // as above
	if part++; part == idParts {
		second, part = second.Add(time.Second), 0
	}
	return newID(second, part)
}
