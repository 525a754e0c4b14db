package apart

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// Serve reads a file and ends this process if Read started it, and does nothing otherwise. Call
// it from an init function, before any main function runs: then every program that reads
// documents can be that process, tests too.
func Serve(readers map[string]Reader) {
	var kind string
	var most int64
	var within time.Duration
	if _, err := fmt.Sscanf(os.Getenv(variable), "%s %d %d", &kind, &most, &within); err != nil {
		return
	}
	if readers[kind] == nil {
		os.Exit(1)
	}
	os.Exit(serve(readers[kind], kind, os.Stdin, os.Stdout, most, within))
}

// serve reads a file and writes a reply. It ends the process if that takes too long, since the
// parent may be gone.
func serve(read Reader, kind string, in io.Reader, out io.Writer, most int64, within time.Duration) (code int) {
	limitMemory(memory)
	time.AfterFunc(within, func() { os.Exit(1) })
	raw, err := io.ReadAll(in)
	if err != nil {
		return 1
	}
	if err := json.NewEncoder(out).Encode(readSafely(read, kind, raw, most, time.Now().Add(within))); err != nil {
		return 1
	}
	return 0
}

func readSafely(read Reader, kind string, raw []byte, most int64, stop time.Time) (r reply) {
	defer func() {
		if why := recover(); why != nil {
			r = reply{Error: fmt.Sprintf("its %s cannot be read: %v; leave it out with exclude", kind, why)}
		}
	}()
	text, title, err := read(raw, most, stop)
	if err != nil {
		return reply{Error: err.Error()}
	}
	return reply{Text: text, Title: title}
}
