package report

import (
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/progress"
	"github.com/racflow/racflow/engine/terminal"
)

// Progress says how far work is, in parts of one line, the most important ones first.
func Progress(s progress.Step, m *progress.Meter, now time.Time) []string {
	what := s.Doing
	if s.Name != "" {
		what += " " + s.Name
	}
	far := quantity(s.Done, s.Unit)
	switch {
	case s.Total > 0 && s.About:
		far = quantities(s.Done, s.Total, s.Unit, " of about ")
	case s.Total > 0:
		far = quantities(s.Done, s.Total, s.Unit, " of ")
	}
	parts := []string{what + ": " + far}
	if left, ok := m.Left(now); ok {
		parts = append(parts, "about "+duration(left)+" left")
	}
	if s.Elapsed > 0 {
		parts = append(parts, duration(s.Elapsed)+" so far")
	}
	for _, one := range []struct {
		n    int64
		what string
	}{{s.Flagged, "flagged"}, {s.Failed, "failed"}} {
		if one.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	if s.Paid > 0 {
		parts = append(parts, "cost so far "+governor.Money(s.Paid))
	}
	if s.Passages > 0 {
		parts = append(parts, quantity(s.Passages, "passage"))
	}
	if rate, ok := m.Rate(now); ok {
		switch {
		case s.Unit == progress.Bytes:
			parts = append(parts, quantity(int64(rate+0.5), s.Unit)+"/s")
		case rate >= 2:
			parts = append(parts, fmt.Sprintf("%.0f/s", rate))
		default:
			parts = append(parts, fmt.Sprintf("%.0f per minute", 60*rate))
		}
	}
	return parts
}

// quantity is a number with its unit.
func quantity(n int64, unit string) string {
	switch unit {
	case "":
		return fmt.Sprint(n)
	case progress.Bytes:
		return terminal.Bytes(n)
	}
	return terminal.Plural(int(n), unit)
}

// quantities are two numbers of one unit.
func quantities(n, of int64, unit, between string) string {
	digits := fmt.Sprint(n)
	if unit == progress.Bytes {
		digits, _ = terminal.BytesLike(n, of)
	}
	return digits + between + quantity(of, unit)
}

// duration shows a time as people say it: 45 s, 3 min, 2 h 10 min.
func duration(d time.Duration) string {
	switch minutes := int(d / time.Minute); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d/time.Second))
	case d < 10*time.Minute && d%time.Minute != 0:
		return fmt.Sprintf("%d min %d s", minutes, int(d%time.Minute/time.Second))
	case minutes < 60:
		return fmt.Sprintf("%d min", minutes)
	default:
		return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
	}
}
