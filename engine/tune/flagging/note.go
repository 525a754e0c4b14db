package flagging

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/promise"
)

// mark begins the comment of a file of variables that states a promise in numbers:
// accuracy, confidence and share of what is out of scope that is caught (0: nothing was
// promised about it), variable and value.
const mark = "# promise "

// Note is the part of a file of variables that states the promise and keeps it.
func (f Found) Note() string {
	var b strings.Builder
	for line := range strings.Lines(f.String()) {
		b.WriteString("# " + line)
	}
	value := strconv.FormatFloat(f.Threshold(), 'g', -1, 64)
	fmt.Fprintf(&b, "%s%v %v %v %s %s\n", mark, f.Goal.Accuracy, f.Goal.Confidence, math.Floor(1e4*f.Caught)/1e4, f.Rule.Variable, value)
	fmt.Fprintf(&b, "%s = %s\n", f.Rule.Variable, value)
	return b.String()
}

// Noted is a promise as a file of variables states it.
type Noted struct {
	Goal     promise.Goal
	Caught   float64
	Variable string
	Value    float64
}

// Read returns the promise that a file of variables states; ok is false where it states
// none.
func Read(path string) (n Noted, ok bool, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return n, false, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, cut := strings.CutPrefix(line, mark); cut {
			read, _ := fmt.Sscan(rest, &n.Goal.Accuracy, &n.Goal.Confidence, &n.Caught, &n.Variable, &n.Value)
			return n, read == 5, nil
		}
	}
	return n, false, nil
}

// String states the promise in lines for people, and what it was found on.
func (f Found) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%.0f %% are answered, at least %s of them right, with %s confidence\n",
		100*share(f.Answered, f.Rows), percent(f.Goal.Accuracy), percent(f.Goal.Confidence))
	fmt.Fprintf(&b, "found on %d rows", f.Rows)
	if f.Split {
		b.WriteString(" that no other value was found on")
	}
	fmt.Fprintf(&b, ": %d are answered without a flag, %d of them right (%.1f %%)\n", f.Answered, f.Right, 100*share(f.Right, f.Answered))
	if f.Outside > 0 {
		fmt.Fprintf(&b, "out of scope: at least %s are flagged or left without an answer, with %s confidence; %d of %d were\n",
			percent(math.Floor(1e3*f.Caught)/1e3), percent(f.Goal.Confidence), f.Outside-f.Missed, f.Outside)
	}
	return b.String()
}

func share(n, of int) float64 { return float64(n) / float64(max(of, 1)) }

func percent(share float64) string {
	return strconv.FormatFloat(math.Round(1e6*share)/1e4, 'f', -1, 64) + " %"
}
