package serve

import (
	"regexp"
	"strings"
)

// caller matches the functions of this package that call a stage.
var caller = regexp.MustCompile(`/sdk/serve\.(\(\*Server\)|batch\[|work\[)`)

// maxFrames bounds the frames of a stack that an error shows.
const maxFrames = 6

// stageFrames are the frames of the stage's own code at the top of the stack of a
// panic: those between the runtime's, which panicked, and this package's, which
// called the stage.
func stageFrames(stack string) string {
	_, stack, _ = strings.Cut(stack, "\npanic(")
	lines := strings.Split(stack, "\n")
	var frames []string
	for i := 2; i+1 < len(lines) && len(frames) < 2*maxFrames; i += 2 { // a function, and its place
		function, place := lines[i], lines[i+1]
		switch {
		case strings.HasPrefix(function, "runtime."):
			continue
		case caller.MatchString(function):
			return strings.Join(frames, "\n  ")
		}
		place, _, _ = strings.Cut(place, " +0x")
		frames = append(frames, function, place)
	}
	return strings.Join(frames, "\n  ")
}
